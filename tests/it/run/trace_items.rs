//! The HTML page of a workflow, as it is sent to somebody who was not there: its items with what became of them, what was decided and
//! said, and what was sent.

use serde_json::{Value, json};

use crate::run::workflows::{definition, foreach, place, resume, run, script};

/// What a script and a document write, as markup.
const BOMB: &str = "<b>Ada</b>\u{202e}";

/// A table's rows, each as the texts of its cells.
fn rows(page: &str) -> Vec<Vec<String>> {
    let table = page.split("<table class=\"items\">").nth(1).expect("a table").split("</table>").next().unwrap();
    let body = table.split("<tbody>").nth(1).unwrap();
    let text = |cell: &str| {
        let parts = cell.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
        parts.collect::<String>().trim().to_owned()
    };
    let cells = |row: &str| {
        row.split_inclusive("</td>")
            .flat_map(|part| part.split_inclusive("</th>"))
            .map(text)
            .filter(|text| !text.is_empty())
            .collect()
    };
    body.split("<tr").skip(1).map(|row| row.split_once('>').unwrap().1).map(cells).collect()
}

#[test]
fn the_page_of_a_workflow_has_its_items_verdicts_decisions_form_values_and_notices() {
    let place = place();
    script(
        &place,
        json!({ "a": [{ "sent": 1 }], "b": [{ "n": 2 }, { "error": "the bank is closed" }, { "n": 3 }], "c": [{ "n": 3 }] }),
    );
    let ask = json!({ "id": "ask", "type": "PbotApproval", "properties": { "comment": "Pay {{one.invoice}}?",
        "request_payload": { "to": "@one" }, "on_rejected": "go_on" }, "filter": { "condition": { "greaterThan": ["@one.amount", 100] } } });
    let pay = json!({ "id": "pay", "type": "b", "properties": { "text": "Dear {{one.supplier}}, we pay {{one.amount}}.", "password": "@input.password" } });
    let settings = json!({ "failure_strategy": "continue_on_error", "on_pause": "go_on", "max_concurrency": 1,
        "collect_results": true, "result_key": "all", "collect": "@one.invoice" });
    let form = json!({ "id": "form", "type": "PbotForm", "properties": { "expected_keys": ["why"] } });
    definition(
        &place,
        json!({ "output": "@why", "actions": [foreach("@input.items", settings, json!([ask, pay])), form,
            { "id": "notify", "type": "a", "properties": { "text": "Settled: {{why}}" } }] }),
    );
    let item =
        |invoice: &str, amount: u32| json!({ "invoice": invoice, "supplier": BOMB, "amount": amount, "lines": [1, 2] });
    let items = json!([item("INV-1", 50), item("INV-2", 60), item("INV-3", 700)]);
    let (ran, _) = run(&place, json!({ "items": items, "password": "hunter-2-hunter" }));
    assert_eq!(ran.code, 3, "{ran:#?}");
    let html = || {
        let page = place.call(&["trace", "r", "--format", "html"]);
        assert_eq!(page.code, 0, "{page:?}");
        page.stdout
    };
    // While one waits, those that ended are there.
    let page = html();
    let states: Vec<String> = rows(&page).iter().map(|row| row.last().unwrap().clone()).collect();
    assert_eq!(states, ["completed", "failed", "waiting"]);
    let (ran, _) = resume(&place, &["--approve", "--at", "each.2.ask"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    let (ran, _) = resume(&place, &["--answer", r#"{"why": "all is <i>right</i>"}"#]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let page = html();
    let shown = rows(&page);
    assert_eq!(shown.len(), 3, "{shown:#?}");
    assert!(shown[0].iter().any(|cell| cell.starts_with("INV-1") && cell.contains("amount 50")), "{shown:#?}");
    assert!(shown[0].contains(&"INV-1".to_owned()), "what was gathered of it: {shown:#?}");
    assert!(shown[1].iter().any(|cell| cell.contains("the bank is closed")), "{shown:#?}");
    assert!(shown[2].iter().any(|cell| cell.starts_with("approved by ")), "{shown:#?}");
    let text = place.call(&["trace", "r"]).stdout;
    assert!(text.contains("each.2.ask: approved by ") && text.contains("form: answered by "), "{text}");
    for text in [
        "Items of each",
        "3 items: 2 completed, 1 failed",
        "id=\"each.1\"",
        "we pay 60.",
        "all is &lt;i&gt;right&lt;/i&gt;",
        "Settled: all is &lt;i&gt;right&lt;/i&gt;",
        "&lt;b&gt;Ada&lt;/b&gt;\\u{202E}",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    for text in ["hunter-2", "<b>Ada", "\u{202e}", "<i>right", "confidence"] {
        assert!(!page.contains(text), "{text}: {page}");
    }
}

#[test]
fn the_page_of_many_items_is_bounded_and_says_what_is_left_out() {
    let place = place();
    let settings = json!({ "max_concurrency": 20 });
    definition(
        &place,
        json!({ "output": { "n": "@input.items.length" }, "actions": [foreach("@input.items", settings, json!([
        { "type": "a", "properties": { "of": "@one" } }, { "type": "b", "properties": {} }, { "type": "c", "properties": {} }, { "type": "a", "properties": {} }]))] }),
    );
    let items: Vec<Value> = (0..1_100).map(|n| json!(format!("item {n}"))).collect();
    let (ran, _) = run(&place, json!({ "items": items }));
    assert_eq!(ran.code, 0, "{ran:#?}");
    let page = place.call(&["trace", "r", "--format", "html"]).stdout;
    assert_eq!(rows(&page).len(), 1_000);
    assert!(
        page.contains("100 more items of each are not shown")
            && page.contains("1,400 more steps of items are not shown")
    );
    assert!(page.len() < 8 << 20, "{}", page.len());
}
