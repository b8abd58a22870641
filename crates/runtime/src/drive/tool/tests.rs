//! The toolbox: deadlines, panics, secrets, and each kind by the same calls.

use std::fs;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use super::test_server::{TestServer, answer};
use super::*;
use crate::drive::retry::{NextAttempt, next_attempt};
use loopctl_engine::event::{Allowance, CallId, MAY_HAVE_HAPPENED};
use loopctl_lang::program::Builtin;
use loopctl_lang::program::json_texts::JsonRule;
use loopctl_lang::program::mcp::ToolOrigin;
use loopctl_lang::program::reference::{Field, Secrets};
use loopctl_lang::program::schema::Schema;
use loopctl_lang::program::template::{Template, ValueEscape};
use loopctl_lang::program::{CommandTool, DbTool, HttpTool};

const SECRET: &str = "hunter22-and-more";

struct World {
    root: tempfile::TempDir,
    vault: Arc<Vault>,
    project: Project,
    embedded: BTreeMap<String, Arc<dyn DynTool>>,
}

/// An embedded tool made of a function.
struct Does<F>(F);

impl<F> DynTool for Does<F>
where
    F: Fn() -> BoxFuture<'static, Result<Value, ToolFault>> + Send + Sync,
{
    fn name(&self) -> &str {
        "t"
    }
    fn description(&self) -> &str {
        "does it"
    }
    fn parameters(&self) -> Value {
        json!({})
    }
    fn call<'a>(&'a self, _: &'a ToolCall<'a>) -> BoxFuture<'a, Result<Value, ToolFault>> {
        (self.0)()
    }
}

impl World {
    fn new(project: &Value) -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("key"), SECRET).unwrap();
        let project: Project = serde_json::from_str(&project.to_string()).unwrap();
        let vault = Arc::new(Vault::new(BTreeMap::from([("k".to_owned(), "file:key".into())]), root.path()));
        Self { root, vault, project, embedded: BTreeMap::new() }
    }

    fn embed(
        mut self,
        does: impl Fn() -> BoxFuture<'static, Result<Value, ToolFault>> + Send + Sync + 'static,
    ) -> Self {
        self.embedded.insert("t".to_owned(), Arc::new(Does(does)));
        self
    }

    fn toolbox(&self) -> Toolbox {
        let models = Arc::new(Models::new(&self.project, self.root.path(), &self.vault, None));
        let project = Arc::new(self.project.clone());
        Toolbox::new(&project, self.root.path(), &self.vault, &models, self.embedded.clone())
    }

    async fn call(&self, kind: ToolKind, deadline: Duration) -> ToolResult {
        call(&self.toolbox(), kind, &json!({"id": 7}), deadline).await
    }

    async fn class(&self, kind: ToolKind) -> String {
        match self.call(kind, LONG).await {
            ToolResult::Failed(fault) => fault.class,
            ToolResult::Ok(value) => panic!("it went well: {value}"),
        }
    }
}

const LONG: Duration = Duration::from_secs(60);

async fn call(toolbox: &Toolbox, kind: ToolKind, input: &Value, deadline: Duration) -> ToolResult {
    let tool = Tool {
        name: "t".to_owned(),
        description: String::new(),
        parameters: Schema::compile(json!({"type": "object"})).unwrap(),
        kind,
        approval: Default::default(),
        max_calls: None,
        timeout_ms: 1,
        polling: false,
        remember: BTreeMap::new(),
        idempotent: false,
        read_only: false,
        on_uncertain: None,
        retry: None,
    };
    let call = ToolCall {
        id: CallId { iteration: 3, index: 0 },
        at: None,
        request: 0,
        input: &Arc::new(input.clone()),
        run_input: &Value::Null,
        lists: None,
        run_id: "run",
        loop_name: "test",
        json: JsonRule::PRESENT,
        now: "2026-01-01T00:00:00Z",
        model: "m",
        deadline,
        left: Allowance::default(),
        trace: None,
        answered: &[],
        listener: None,
        wait: None,
    };
    match next_attempt(&tool, 1, toolbox.call(&tool, &call).await) {
        NextAttempt::None(result) => result,
        NextAttempt::After(..) | NextAttempt::Asked(_) => panic!("the call has not ended"),
    }
}

fn plain(text: &str) -> Template {
    Template::compile(text, ValueEscape::Plain).unwrap()
}

fn http_tool(url: &str) -> ToolKind {
    let action = json!({"action_name": "t", "url": url, "http_method": "POST"}).to_string();
    ToolKind::Http(HttpTool {
        action: serde_json::from_str(&action).unwrap(),
        url: plain(url),
        headers: Vec::new(),
        query: Vec::new(),
        body: None,
        used: Vec::new(),
        bare: None,
    })
}

fn command_tool(args: &[&str]) -> ToolKind {
    let action = json!({"action_name": "t", "program": "sh", "args": args}).to_string();
    ToolKind::Command(CommandTool {
        action: serde_json::from_str(&action).unwrap(),
        args: args.iter().map(|arg| plain(arg)).collect(),
        stdin: None,
        env: BTreeMap::from([("MARK".to_owned(), plain("yes"))]),
    })
}

fn failed(class: &str) -> ToolFault {
    fault(class, "")
}

#[tokio::test]
async fn a_call_ends_at_its_deadline() {
    let world = World::new(&json!({})).embed(|| Box::pin(std::future::pending()));
    let result = world.call(ToolKind::Embedded(ToolOrigin::Program), Duration::from_millis(1)).await;
    assert_eq!(result, ToolResult::Failed(failed(&format!("timed out after 1 ms{MAY_HAVE_HAPPENED}"))));
}

#[tokio::test]
async fn at_the_deadline_a_program_is_killed() {
    let world = World::new(&json!({"allow": {"commands": ["sh"]}}));
    let started = crate::drive::clock::instant();
    let result = world.call(command_tool(&["-c", "sleep 1000 & sleep 1000"]), Duration::from_millis(20)).await;
    assert_eq!(result, ToolResult::Failed(failed(&format!("timed out after 20 ms{MAY_HAVE_HAPPENED}"))));
    assert!(Instant::elapsed(&started) < LONG);
}

#[test]
fn times_are_said_as_people_say_them() {
    for (ms, said) in [(0, "0 ms"), (250, "250 ms"), (1000, "1 s"), (1500, "1.5 s"), (30_000, "30 s"), (90_000, "90 s")]
    {
        assert_eq!(seconds(Duration::from_millis(ms)), said);
    }
}

#[tokio::test]
async fn a_panic_is_a_failure_of_the_call_only() {
    let early = World::new(&json!({})).embed(|| panic!("early {SECRET}"));
    early.vault.secret("k").unwrap();
    let late = World::new(&json!({})).embed(|| {
        Box::pin(async {
            tokio::task::yield_now().await;
            panic!("late")
        })
    });
    let class = format!("tool panicked{MAY_HAVE_HAPPENED}");
    let expected = ToolFault { class: class.clone(), detail: "early [secret k]".to_owned(), ..ToolFault::default() };
    assert_eq!(early.call(ToolKind::Embedded(ToolOrigin::Program), LONG).await, ToolResult::Failed(expected));
    let expected = ToolFault { class, detail: "late".to_owned(), ..ToolFault::default() };
    assert_eq!(late.call(ToolKind::Embedded(ToolOrigin::Program), LONG).await, ToolResult::Failed(expected));
}

#[tokio::test]
async fn a_result_of_any_depth_is_survived() {
    let deep = |levels: usize| {
        World::new(&json!({})).embed(move || {
            Box::pin(async move {
                let mut value = json!(1);
                for level in 0..levels {
                    value = if level % 2 == 0 { Value::Array(vec![value]) } else { json!({ "a": value }) };
                    // The macro would copy; a move keeps this linear.
                }
                Ok(value)
            })
        })
    };
    assert!(matches!(deep(127).call(ToolKind::Embedded(ToolOrigin::Program), LONG).await, ToolResult::Ok(_)));
    let too_deep = format!("result nested too deep{MAY_HAVE_HAPPENED}");
    assert_eq!(deep(128).class(ToolKind::Embedded(ToolOrigin::Program)).await, too_deep);
    let bomb = World::new(&json!({}))
        .embed(|| Box::pin(async { Ok((0..100_000).fold(Value::Null, |inner, _| Value::Array(vec![inner]))) }));
    assert_eq!(bomb.class(ToolKind::Embedded(ToolOrigin::Program)).await, too_deep);
}

#[tokio::test]
async fn no_result_and_no_fault_holds_a_resolved_secret() {
    let said = World::new(&json!({})).embed(|| Box::pin(async { Ok(json!({"echo": [SECRET, {SECRET: 1}]})) }));
    let failed = World::new(&json!({})).embed(|| Box::pin(async { Err(fault(format!("no {SECRET}"), SECRET)) }));
    // The twin: before it is resolved, it is a text like others.
    assert!(format!("{:?}", said.call(ToolKind::Embedded(ToolOrigin::Program), LONG).await).contains(SECRET));
    for world in [said, failed] {
        world.vault.secret("k").unwrap();
        let result = world.call(ToolKind::Embedded(ToolOrigin::Program), LONG).await;
        let shown = format!("{result:?} {:?}", world.toolbox());
        assert!(shown.contains("[secret k]") && !shown.contains(SECRET), "{shown}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_available() {
    let world = World::new(&json!({}));
    assert_eq!(world.class(ToolKind::Embedded(ToolOrigin::Program)).await, "tool not available");
    assert_eq!(world.class(ToolKind::Builtin(Builtin::Complete)).await, "tool not available");
}

#[tokio::test]
async fn http_goes_through_the_projects_guard() {
    let server = TestServer::saying(answer(200, "", "{\"ok\":true}"));
    let url = server.url("/tickets");
    let shut = World::new(&json!({}));
    assert_eq!(shut.class(http_tool(&url)).await, "address not allowed");
    let elsewhere = World::new(&json!({"allow": {"private_addresses": true, "hosts": ["api.example.com"]}}));
    assert_eq!(elsewhere.class(http_tool(&url)).await, "address not allowed");
    assert_eq!(server.requests().len(), 0);

    let open = World::new(&json!({"allow": {"private_addresses": true, "hosts": ["127.0.0.1"]}}));
    assert_eq!(open.call(http_tool(&url), LONG).await, ToolResult::Ok(json!({"ok": true})));
    let sent = server.requests().remove(0);
    assert!(sent.starts_with("POST /tickets ") && sent.ends_with("\r\n\r\n{\"id\":7}"), "{sent}");
    assert!(sent.contains("idempotency-key: run-3-0\r\n"), "{sent}");
}

#[tokio::test]
async fn a_command_gets_what_the_action_declares() {
    let shut = World::new(&json!({}));
    assert_eq!(shut.class(command_tool(&["-c", "true"])).await, "program not allowed");
    let open = World::new(&json!({"allow": {"commands": ["sh"]}}));
    let script = "echo \"$MARK $HOME $1 $(pwd)\"";
    let ToolResult::Ok(Value::String(text)) = open.call(command_tool(&["-c", script, "sh", "a b"]), LONG).await else {
        panic!("not text")
    };
    assert_eq!(text, format!("yes  a b {}", open.root.path().canonicalize().unwrap().display()));
}

#[tokio::test]
async fn a_query_takes_params_or_the_input() {
    let world = World::new(&json!({"datasources": {"d": {"url": "sqlite:d.db", "init": "init.sql"}}}));
    fs::write(world.root.path().join("init.sql"), "CREATE TABLE t (a);").unwrap();
    let query = |sql: &str, params: &[Value]| {
        let action = json!({"action_name": "t", "datasource": "d", "query": sql, "params": params}).to_string();
        let params = params.iter().cloned().map(Field::Literal).collect();
        ToolKind::Db(DbTool { action: serde_json::from_str(&action).unwrap(), params })
    };
    let by_place = world.call(query("SELECT $1 AS x", &[json!("first")]), LONG).await;
    assert_eq!(by_place, ToolResult::Ok(json!({"rows": [{"x": "first"}], "row_count": 1})));
    let by_name = world.call(query("SELECT :id AS x", &[]), LONG).await;
    assert_eq!(by_name, ToolResult::Ok(json!({"rows": [{"x": 7}], "row_count": 1})));
}

#[test]
fn calls_can_be_made_from_any_thread() {
    fn is_send<T: Send>(_: T) {}
    let world = World::new(&json!({}));
    let toolbox = world.toolbox();
    is_send(call(&toolbox, ToolKind::Embedded(ToolOrigin::Program), &Value::Null, LONG));
}
