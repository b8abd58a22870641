//! `loopctl init`: a project that checks, tests and runs at once, and refusals that leave nothing behind.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::{Place, Ran};

/// The program in a folder below the place.
fn call_in(place: &Place, folder: &str, args: &[&str]) -> Ran {
    let mut command = place.command(args);
    crate::common::ran(&command.current_dir(place.path().join(folder)).output().unwrap())
}

/// The commands that `init` printed behind `next`, without the program.
fn next(said: &str) -> Vec<Vec<String>> {
    let lines = said.lines().skip_while(|line| *line != "next").skip(1).take_while(|line| !line.is_empty());
    lines.filter(|line| !line.trim_start().starts_with("cd ")).map(|line| words(line.trim())).collect()
}

/// The words of a command, as a shell would split it.
fn words(line: &str) -> Vec<String> {
    let parts: Vec<&str> = line.split('\'').collect();
    let mut words = vec![String::new()];
    for (at, part) in parts.iter().enumerate() {
        if at % 2 == 1 {
            words.last_mut().unwrap().push_str(part);
            continue;
        }
        for (space, piece) in part.split(' ').enumerate() {
            if space > 0 {
                words.push(String::new());
            }
            words.last_mut().unwrap().push_str(piece);
        }
    }
    words.into_iter().skip(1).filter(|word| !word.is_empty()).collect()
}

/// A project that was made in `mine`: what it prints next works, without warnings and with full coverage.
fn works(place: &Place, init: &[&str]) -> Vec<Ran> {
    let made = place.call(init);
    assert_eq!(made.code, 0, "{init:?}: {}", made.stderr);
    let commands = next(&made.stderr);
    assert_eq!(commands.len(), 3, "{}", made.stderr);
    let all: Vec<Ran> = commands
        .iter()
        .map(|command| {
            let args: Vec<&str> = command.iter().map(String::as_str).collect();
            let ran = call_in(place, "mine", &args);
            assert_eq!(ran.code, 0, "{args:?}: {}{}", ran.stdout, ran.stderr);
            ran
        })
        .collect();
    let checked = call_in(place, "mine", &["check", "--deny-warnings"]);
    assert_eq!(checked.code, 0, "{}", checked.stderr);
    // Documents that the user had stay as they were.
    if !init.contains(&"hyphen") {
        let formatted = call_in(place, "mine", &["fmt", "--check"]);
        assert_eq!(formatted.code, 0, "{}", formatted.stderr);
    }
    all
}

#[test]
fn each_kind_of_project_works_at_once() {
    for (kind, noun) in [("triage", "ticket"), ("http", "order"), ("mcp", "note"), ("workflow", "invoice")] {
        let place = Place::new();
        let all = works(&place, &["init", "mine", "--from", kind]);
        assert!(!all[2].stdout.trim().is_empty(), "{kind}: the run has no answer");
        let covered = call_in(&place, "mine", &["test", "--coverage", "100"]);
        assert_eq!(covered.code, 0, "{kind}: {}", covered.stderr);
        let whole: String = place.files().iter().map(|(path, _)| path.display().to_string() + "\n").collect();
        assert!(whole.contains(noun) && !whole.contains("record"), "{whole}");
    }
}

/// Makes projects of each kind with nouns of all sorts, and does with each what `init` says next. `whole`: each noun in each kind,
/// and otherwise one noun in each kind and one kind for each noun.
fn nouns_and_kinds(whole: bool) {
    let kinds = ["triage", "http", "mcp", "workflow"];
    for (n, noun) in
        ["order", "group", "value", "purchase_order", "select", "t2", "objective", "tools"].into_iter().enumerate()
    {
        let place = Place::new();
        fs::create_dir(place.path().join("mine")).unwrap();
        for kind in kinds.into_iter().filter(|kind| whole || n == 0 || *kind == kinds[n % kinds.len()]) {
            let folder = format!("mine/{kind}");
            let args = ["init", &folder, "--from", kind, "--looks-up", noun, "--model", "claude-sonnet-4-5"];
            let made = place.call(&args);
            assert_eq!(made.code, 0, "{noun}: {}", made.stderr);
            assert!(made.stderr.contains("claude-sonnet-4-5") && made.stderr.contains("ANTHROPIC_API_KEY"));
            // A noun that a language has a meaning for is in the files, which `test` checks and runs.
            let commands = next(&made.stderr);
            for command in commands.iter().filter(|command| noun == "order" || command[0] == "test") {
                let args: Vec<&str> = command.iter().map(String::as_str).collect();
                let ran = call_in(&place, &folder, &args);
                assert_eq!(ran.code, 0, "{noun}: {args:?}: {}{}", ran.stdout, ran.stderr);
            }
        }
    }
}

#[test]
#[ignore = "nightly: each noun in each kind of project"]
fn each_noun_makes_a_project_of_each_kind() {
    nouns_and_kinds(true);
}

#[test]
fn the_folder_may_be_this_one_and_the_noun_and_the_model_are_the_users() {
    nouns_and_kinds(false);
    let here = Place::new();
    let made = here.call(&["init"]);
    assert!(made.code == 0 && !made.stderr.contains("cd "), "{}", made.stderr);
    assert_eq!(here.call(&["test"]).code, 0);
}

#[test]
fn one_line_makes_it_real() {
    let place = Place::new();
    assert_eq!(place.call(&["init"]).code, 0);
    let project = fs::read_to_string(place.path().join("loopctl.json")).unwrap();
    place.file("loopctl.json", project.replace("\"model\": \"scripted\"", "\"model\": \"main\""));
    let ran = place.call(&["run", "triage", "--input", "ticket_id=1001"]);
    assert!(ran.code == 2 && ran.stderr.contains("OPENAI_API_KEY"), "{}", ran.stderr);
}

#[test]
fn the_editor_is_given_the_schemas_of_the_files() {
    let place = Place::new();
    assert_eq!(place.call(&["init"]).code, 0);
    let read = |path: &str| -> Value { serde_json::from_slice(&fs::read(place.path().join(path)).unwrap()).unwrap() };
    let settings = read(".vscode/settings.json");
    for (path, kind) in [
        ("triage.json", "loop"),
        ("actions/lookup_ticket.json", "actions"),
        ("loopctl.json", "project"),
        ("script.json", "script"),
        ("triage.test.json", "scenario"),
    ] {
        let name = path.rsplit('/').next().unwrap();
        let fits = |glob: &Value| {
            let glob = glob.as_str().unwrap().trim_start_matches('/');
            glob == path
                || glob == name
                || glob.split_once('*').is_some_and(|(begin, end)| path.starts_with(begin) && path.ends_with(end))
        };
        let rules = settings["json.schemas"].as_array().unwrap();
        let rule = rules.iter().find(|rule| rule["fileMatch"].as_array().unwrap().iter().any(fits)).unwrap();
        let schema = read(rule["url"].as_str().unwrap().trim_start_matches("./"));
        assert!(rule["url"].as_str().unwrap().contains(kind), "{path}: {rule}");
        let judge = jsonschema::validator_for(&schema).unwrap();
        assert!(judge.is_valid(&read(path)), "{path}");
    }
    assert!(fs::read_to_string(place.path().join(".gitignore")).unwrap().contains(".loopctl/"));
}

#[test]
fn nothing_is_written_over_and_a_refusal_leaves_nothing() {
    let place = Place::new();
    place.file("loopctl.json", "{}");
    place.file("actions/lookup_ticket.json", "mine");
    let before = place.files();
    let refused = place.call(&["init"]);
    assert_eq!(refused.code, 2);
    let said = "nothing was written: actions/lookup_ticket.json, loopctl.json exist already in .";
    assert!(refused.stderr.contains(said), "{}", refused.stderr);
    assert_eq!(place.files(), before);
    // What other tools write too is left as it is.
    let other = Place::new();
    other.file(".gitignore", "target\n");
    other.file(".vscode/settings.json", "{}");
    let made = other.call(&["init"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    assert!(made.stderr.contains("left as they are: .vscode/settings.json, .gitignore"), "{}", made.stderr);
    assert!(made.stderr.contains("add `.loopctl/` to .gitignore"), "{}", made.stderr);
    assert_eq!(fs::read_to_string(other.path().join(".gitignore")).unwrap(), "target\n");
    let again = other.call(&["init"]);
    assert!(again.code == 2 && again.stderr.contains("triage.json"), "{}", again.stderr);
}

#[test]
fn what_is_no_name_and_no_folder_is_refused() {
    for (args, said) in [
        (&["init", "mine", "--looks-up", "../x"][..], "can't be looked up"),
        (&["init", "mine", "--looks-up", "Order Line"], "write it like order_line"),
        (&["init", "mine", "--looks-up", "bestellung\u{fc}"], "begins with a letter"),
        (&["init", "mine", "--looks-up", ""], "it is empty"),
        (&["init", "mine", "--looks-up", &"x".repeat(10_000)], "more than 40 characters"),
        (&["init", "mine", "--looks-up", "input"], "take another word"),
        (&["init", "mine", "--model", "a b"], "no id of a model"),
        (&["init", "mine", "--model", "\u{1b}[2J"], "no id of a model"),
        (&["init", "mine", "--model", concat!("sk-", "proj-a1B2c3D4e5F6g7H8i9J0k1L2")], "it looks like"),
        (&["init", "mine", "--from", "trige"], "the nearest kind is triage"),
        (&["init", "mine", "--from", "django"], "triage, http, mcp, workflow, or hyphen FILE"),
        (&["init", "mine", "--from", "hyphen"], "--from hyphen names no document"),
        (&["init", "mine", "--from", "http", "other"], "takes no file: other"),
        (&["init", "mine", "--from", "hyphen", "gone.json"], "gone.json"),
        (&["init", "mine", "--from", "hyphen", "file", "--looks-up", "order"], "leave one of them out"),
        (&["init", "file"], "file is a file, and no folder"),
        (&["init", "file/below"], "nothing was written"),
        (&["init", ""], "a value is required"),
        (&["init", &"x".repeat(300)], "nothing was written"),
    ] {
        let place = Place::new();
        place.file("file", "mine");
        let before = place.files();
        let ran = place.call(args);
        assert_eq!(ran.code, 2, "{args:?}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(said), "{args:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains('\u{1b}') && !ran.stderr.contains("a1B2"), "{}", ran.stderr);
        assert_eq!(place.files(), before, "{args:?}");
    }
    // The second value of `--from` is the folder, where it is no document.
    let place = Place::new();
    assert_eq!(place.call(&["init", "--from", "http", "mine"]).code, 0);
    assert!(place.path().join("mine/answer.json").exists());
}

#[cfg(unix)]
#[test]
fn links_lead_nothing_out_of_the_folder_and_a_closed_folder_is_named() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let (place, outside) = (Place::new(), Place::new());
    fs::create_dir(place.path().join("mine")).unwrap();
    symlink(outside.path(), place.path().join("mine/.vscode")).unwrap();
    let ran = place.call(&["init", "mine"]);
    assert!(ran.code == 2 && ran.stderr.contains(".vscode is a link"), "{}", ran.stderr);
    assert_eq!(outside.files().len(), 0);
    assert_eq!(fs::read_dir(place.path().join("mine")).unwrap().count(), 1);

    symlink("gone", place.path().join("nowhere")).unwrap();
    symlink("circle", place.path().join("circle")).unwrap();
    for name in ["nowhere", "circle"] {
        let ran = place.call(&["init", name]);
        assert!(ran.code == 2 && ran.stderr.contains("is a link that leads to no folder"), "{}", ran.stderr);
    }
    let mut command = place.command(&["init", "new"]);
    let ran = crate::common::ran(&command.env("TMPDIR", "/no/such/folder").output().unwrap());
    assert!(ran.code == 2 && ran.stderr.contains("with TMPDIR"), "{}", ran.stderr);

    let closed = place.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    // The superuser may write there all the same.
    if fs::write(closed.join("probe"), "").is_err() {
        let ran = place.call(&["init", "closed/mine"]);
        assert!(ran.code == 2 && ran.stderr.contains("nothing was written"), "{}", ran.stderr);
    }
}

/// A document of Hyphen whose actions nobody has.
fn agent(place: &Place, path: &str) {
    let document = json!({
        "type": "loop",
        "name": "invoice-agent",
        "input": { "type": "object", "properties": { "invoice_id": { "type": "string" } }, "required": ["invoice_id"] },
        "properties": {
            "mode": "react",
            "objective": "Find out why invoice {{input.invoice_id}} is open.",
            "tools": [{ "type": "action", "name": "lookup_invoice" }, { "type": "action", "name": "send/mail-2" }],
            "max_iterations": 6,
            "on_stuck": { "iterations": 3, "action": "escalate" },
        },
    });
    place.json(path, &document);
}

#[test]
fn a_project_is_made_around_a_document() {
    let place = Place::new();
    agent(&place, "theirs/Invoice agent.json");
    let all = works(&place, &["init", "mine", "--from", "hyphen", "theirs/Invoice agent.json"]);
    assert!(!all[2].stdout.trim().is_empty());
    let mine = place.path().join("mine");
    let copied = fs::read(mine.join("Invoice_agent.json")).unwrap();
    assert_eq!(copied, fs::read(place.path().join("theirs/Invoice agent.json")).unwrap(), "the document is as it was");
    for name in ["actions/lookup_invoice.json", "actions/send_mail-2.json", "loopctl.json", "script.json"] {
        assert!(mine.join(name).exists(), "{name}");
    }
}

#[test]
fn a_document_stays_in_its_folder_with_the_actions_that_it_has() {
    let place = Place::new();
    agent(&place, "mine/agent.json");
    let action = json!({ "action_name": "lookup_invoice", "kind": "http", "description": "Reads an invoice.",
        "url": "https://api.example.com/invoices/{{invoice_id}}", "http_method": "GET" });
    place.json("mine/actions/own.json", &action);
    let before = fs::read(place.path().join("mine/agent.json")).unwrap();
    works(&place, &["init", "mine", "--from", "hyphen", "mine/agent.json"]);
    assert_eq!(fs::read(place.path().join("mine/agent.json")).unwrap(), before);
    assert!(!place.path().join("mine/actions/lookup_invoice.json").exists());
}

#[test]
fn what_no_script_can_be_made_for_is_said() {
    let place = Place::new();
    let id = json!({ "type": "string", "pattern": "^(?=.*[0-9])(a|b)$" });
    let input = json!({ "type": "object", "properties": { "id": id }, "required": ["id"] });
    let properties = json!({ "mode": "react", "objective": "Look at {{input.id}}.",
        "tools": [{ "type": "action", "name": "look" }] });
    place.json("odd.json", &json!({ "type": "loop", "input": input, "properties": properties }));
    let made = place.call(&["init", "mine", "--from", "hyphen", "odd.json"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    assert_eq!(next(&made.stderr), [["check"]], "{}", made.stderr);
    assert!(made.stderr.contains("No input can be made of its schema"), "{}", made.stderr);
    assert!(!place.path().join("mine/script.json").exists());
    assert_eq!(call_in(&place, "mine", &["check", "--deny-warnings"]).code, 0);
    // A workflow whose second step reads what the first one does not give.
    let flow = json!({ "name": "sum", "definition": { "actions": [
        { "id": "find", "type": "find_rows", "properties": {}, "outputKey": "found" },
        { "id": "each", "type": "loop", "properties": { "mode": "foreach", "items_path": "@found.rows",
            "item_variable_name": "row", "actions_to_execute": [{ "type": "post", "properties": { "of": "@row.id" } }] } },
    ] } });
    place.json("sum.json", &flow);
    let made = place.call(&["init", "flow", "--from", "hyphen", "sum.json"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    assert!(made.stderr.contains("The steps read more than the script answers"), "{}", made.stderr);
    assert_eq!(call_in(&place, "flow", &["test"]).code, 0);
}

#[test]
fn a_workflow_gets_its_actions_and_what_else_is_no_loop_is_refused() {
    let place = Place::new();
    let flow = json!({ "name": "settle", "definition": { "actions": [
        { "id": "find", "type": "find_invoice", "properties": { "number": "7" }, "outputKey": "found" },
        { "id": "post", "type": "post_entry", "properties": { "of": "@found", "amount": 12 } },
    ] } });
    place.json("settle.json", &flow);
    works(&place, &["init", "mine", "--from", "hyphen", "settle.json"]);
    let stub: Value =
        serde_json::from_slice(&fs::read(place.path().join("mine/actions/post_entry.json")).unwrap()).unwrap();
    assert_eq!(stub["parameters"]["required"], json!(["amount", "of"]));
    for (name, text, said) in [
        ("a.json", "{\"scenarios\": []", "a.json"),
        ("b.json", "{\"replies\": []}", "is a script, and no loop or workflow"),
        ("c.json", "not json", "c.json"),
        ("d.json", "{\"type\": \"loop\", \"properties\": {\"mode\": \"react\"}}", "objective"),
    ] {
        place.file(name, text);
        let ran = place.call(&["init", "new", "--from", "hyphen", name]);
        assert!(ran.code != 0 && ran.stderr.contains(said), "{name}: {}", ran.stderr);
        assert!(!place.path().join("new").exists());
    }
    assert!(Path::new(&place.path().join("settle.json")).exists());
}

#[test]
fn a_name_that_begins_like_an_option_is_one_that_can_be_pasted() {
    let place = Place::new();
    let made = place.call(&["init", "--", "-mine"]);
    assert!(made.code == 0 && made.stderr.contains("cd ./-mine\n"), "{}", made.stderr);
    fs::create_dir(place.path().join("mine")).unwrap();
    agent(&place, "-agent.json");
    works(&place, &["init", "mine", "--from", "hyphen", "./-agent.json"]);
}

#[test]
fn a_document_is_copied_beside_the_files_of_its_project() {
    for (name, copied) in [("script", "document"), ("loopctl", "document"), ("agent.test", "agent_test")] {
        let place = Place::new();
        agent(&place, &format!("theirs/{name}.json"));
        works(&place, &["init", "mine", "--from", "hyphen", &format!("theirs/{name}.json")]);
        assert!(place.path().join(format!("mine/{copied}.json")).exists(), "{name}");
    }
}

#[test]
fn what_a_script_can_not_play_is_said() {
    let place = Place::new();
    let flow = json!({ "name": "pay", "definition": { "actions": [
        { "id": "pay", "type": "pay_vendor", "properties": { "to": "@input.vendor", "why": "For {{input.order.id}}" } },
    ] } });
    place.json("pay.json", &flow);
    let made = place.call(&["init", "mine", "--from", "hyphen", "pay.json"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    assert!(made.stderr.contains("`input` has no `vendor`"), "{}", made.stderr);
    assert!(
        made.stderr.contains("run pay --script script.json --input order=... --input vendor=..."),
        "{}",
        made.stderr
    );
    assert_eq!(next(&made.stderr).len(), 2, "the run is not among what works: {}", made.stderr);
    let ran = call_in(
        &place,
        "mine",
        &["run", "pay", "--script", "script.json", "--input", "vendor=Ada", "--input", "{\"order\": {\"id\": 7}}"],
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(call_in(&place, "mine", &["test"]).code, 0);
    // An input of which no sample can be made.
    let mut odd = flow;
    let order = json!({ "type": "object", "properties": { "id": { "type": "integer" } }, "required": ["id"] });
    let vendor = json!({ "type": "string", "pattern": "^(a|b){3}[^x]\\d+$", "minLength": 90 });
    odd["input"] = json!({ "type": "object", "required": ["vendor", "order"],
        "properties": { "vendor": vendor, "order": order } });
    place.json("odd.json", &odd);
    let made = place.call(&["init", "odd", "--from", "hyphen", "odd.json"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    for command in next(&made.stderr) {
        let args: Vec<&str> = command.iter().map(String::as_str).collect();
        assert_eq!(call_in(&place, "odd", &args).code, 0, "{args:?}");
    }
}

#[test]
fn the_fields_of_a_step_may_have_any_names() {
    let place = Place::new();
    let flow = json!({ "name": "send", "definition": { "actions": [
        { "type": "send-mail", "properties": { "a b": "x", "x}}": "y", "{{z}}": 1, "input": 2, "plain": 3 } },
    ] } });
    place.json("send.json", &flow);
    works(&place, &["init", "mine", "--from", "hyphen", "send.json"]);
    let tools: Vec<Value> = (0..150).map(|at| json!({ "type": "action", "name": format!("a{at}") })).collect();
    let many = json!({ "type": "loop", "properties": { "mode": "react", "objective": "Do it.", "tools": tools } });
    place.json("many.json", &many);
    let ran = place.call(&["init", "new", "--from", "hyphen", "many.json"]);
    assert!(ran.code == 2 && ran.stderr.contains("more than 100 actions and secrets"), "{}", ran.stderr);
    assert!(!place.path().join("new").exists());
}

#[test]
fn what_git_and_ci_need_is_said_where_it_is_needed() {
    let place = Place::new();
    place.file(".git/HEAD", "ref: refs/heads/main\n");
    for (folder, ignored) in [("plain", "target/\n"), ("done", "target/\n/.loopctl/\n")] {
        place.file(&format!("{folder}/.gitignore"), ignored);
        let made = place.call(&["init", folder]);
        assert_eq!(made.code, 0, "{}", made.stderr);
        assert_eq!(made.stderr.contains("add `.loopctl/` to .gitignore"), folder == "plain", "{}", made.stderr);
        assert!(made.stderr.contains("move .github to the root of the repository"), "{}", made.stderr);
    }
    let made = place.call(&["init"]);
    assert!(made.code == 0 && !made.stderr.contains("move .github"), "{}", made.stderr);
}

#[test]
fn a_project_that_a_killed_process_has_begun_is_completed() {
    for kind in ["triage", "http", "workflow"] {
        let whole = Place::new();
        assert_eq!(whole.call(&["init", "--from", kind]).code, 0);
        let files = |place: &Place| -> Vec<(String, Vec<u8>)> {
            let name = |path: &Path| path.strip_prefix(place.path()).unwrap().display().to_string();
            let mut files: Vec<_> = place.files().into_iter().map(|(path, bytes)| (name(&path), bytes)).collect();
            files.sort();
            files
        };
        let all = files(&whole);
        // The project file is written last: what was killed before has any number of the others.
        for left in [1, all.len() / 2, all.len() - 1] {
            let place = Place::new();
            for (path, bytes) in all.iter().filter(|(path, _)| path != "loopctl.json").take(left) {
                let path = place.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, bytes).unwrap();
            }
            let made = place.call(&["init", "--from", kind]);
            assert_eq!(made.code, 0, "{kind} {left}: {}", made.stderr);
            assert_eq!(files(&place), all, "{kind} {left}");
        }
        let again = whole.call(&["init", "--from", kind]);
        assert!(again.code == 2 && again.stderr.contains("exist already"), "{}", again.stderr);
        // Other answers make other files: those that are there stay, and are named.
        fs::remove_file(whole.path().join("loopctl.json")).unwrap();
        let other = whole.call(&["init", "--from", kind, "--looks-up", "parcel"]);
        assert!(other.code == 2 && other.stderr.contains("nothing was written"), "{}", other.stderr);
        assert!(other.stderr.contains("that was broken off"), "{}", other.stderr);
        assert!(!whole.path().join("loopctl.json").exists());
    }
}

#[cfg(unix)]
#[test]
fn the_printed_way_into_a_folder_can_be_pasted_whatever_its_name_is() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    for name in
        [&b"a b"[..], b"it's", b"new\nline", b"tab\t\x1b[31m7", b"not\xffutf8", b"-x\r", "gr\u{f6}\u{202e}".as_bytes()]
    {
        let place = Place::new();
        let made = place.command(&["init", "--"]).arg(OsStr::from_bytes(name)).output().unwrap();
        let said = String::from_utf8(made.stderr).unwrap();
        assert!(made.status.success(), "{name:?}: {said}");
        let go = said.lines().map(str::trim).find(|line| line.starts_with("cd ")).unwrap();
        let mut shell = std::process::Command::new("bash");
        let found =
            shell.args(["-ec", &format!("{go} && ls loopctl.json")]).current_dir(place.path()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&found.stdout), "loopctl.json\n", "{go}");
    }
}
