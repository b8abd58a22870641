//! The alert rules and the dashboard name series and labels that a server has, and work in a real Prometheus. Without one on this
//! machine, what needs it is skipped.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::{read, root};
use crate::common::{complete, think};
use crate::serve::client::{Serving, parse, place};

const FOLDER: &str = "packaging/prometheus";

/// Whether a program is on this machine; says so if it is not.
fn has(program: &str, test: &str) -> bool {
    let there = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !there {
        #[allow(clippy::explicit_write, reason = "the line is to be seen when the test passes, too")]
        writeln!(std::io::stderr(), "skipped: {test}: there is no {program} on this machine").unwrap();
    }
    there
}

/// The expressions of the rules and of the dashboard, with values for its variables.
fn expressions() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&read(&format!("{FOLDER}/dashboard.json"))).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
    let of_panels = targets.map(|target| target["expr"].as_str().unwrap().to_owned());
    let rules = read(&format!("{FOLDER}/alerts.yml"));
    let of_rules = rules.split("expr:").skip(1).map(|rest| {
        let is_next = |line: &str| ["for:", "labels:"].iter().any(|key| line.trim_start().starts_with(key));
        let lines = rest.lines().take_while(|line| !is_next(line));
        lines.map(|line| line.trim().trim_start_matches(">-")).collect::<Vec<_>>().join(" ")
    });
    let all: Vec<String> = of_panels.chain(of_rules).collect();
    assert!(all.len() > 40, "{all:?}");
    all.into_iter()
        .map(|expression| {
            let expression = expression.replace("$__rate_interval", "1m").replace("$instance", ".*");
            expression.replace("$loop", ".*").trim().to_owned()
        })
        .collect()
}

/// The names of series in a text.
fn names(text: &str) -> BTreeSet<String> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words =
        text.split(|c| !is_of_name(c)).filter(|word| word.starts_with("loopctl_") || word.starts_with("process_"));
    words.map(str::to_owned).collect()
}

#[test]
fn the_rules_and_the_dashboard_name_series_that_are_documented() {
    let documented = names(&read("docs/observe.md"));
    for expression in expressions() {
        for name in names(&expression) {
            let base = ["_bucket", "_count", "_sum"].iter().find_map(|suffix| name.strip_suffix(suffix));
            assert!(documented.contains(base.unwrap_or(&name)), "docs/observe.md: {name} of {expression}");
        }
    }
}

#[test]
fn each_alert_is_documented_and_the_rules_pass_their_tests() {
    let rules = read(&format!("{FOLDER}/alerts.yml"));
    let page = read("docs/observe.md");
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(page.contains(&format!("| `{alert}` |")), "docs/observe.md: {alert}");
    }
    if !has("promtool", "each_alert_is_documented_and_the_rules_pass_their_tests") {
        return;
    }
    for arguments in [["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]] {
        let ran = Command::new("promtool").args(arguments).current_dir(root().join(FOLDER)).output().unwrap();
        assert!(ran.status.success(), "{arguments:?}: {ran:?}");
    }
}

/// A Prometheus that scrapes a server; it is killed with the test.
struct Scraper {
    child: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Drop for Scraper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Scraper {
    fn start(server: &Serving) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let scrape = format!(
            "scrape_configs:\n- job_name: loopctl\n  scrape_interval: 200ms\n  scrape_timeout: 200ms\n  static_configs:\n  - targets: ['{}']\nrule_files: ['{}']\n",
            server.address,
            root().join(FOLDER).join("alerts.yml").display()
        );
        std::fs::write(folder.path().join("prometheus.yml"), scrape).unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", folder.path().join("prometheus.yml").display()));
        command.arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()));
        command.arg(format!("--web.listen-address={free}"));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { child, address: free, _folder: folder }
    }

    /// What a path of its API answers; none while it does not.
    fn get(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", self.address).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        serde_json::from_slice(&parse(&answer)?.body).ok()
    }

    /// What an expression comes to now.
    fn query(&self, expression: &str) -> Option<Value> {
        let encoded: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
        self.get(&format!("/api/v1/query?query={encoded}"))
    }
}

#[test]
fn a_real_prometheus_reads_what_a_server_counts_and_evaluates_every_expression() {
    if !has("prometheus", "a_real_prometheus_reads_what_a_server_counts_and_evaluates_every_expression") {
        return;
    }
    const RUNS: u32 = 30;
    let place = place(json!({}), &[think("__log_progress__", json!({ "message": "m" })), complete(json!("ok"))]);
    let server = Serving::start(&place, &["--store", "sqlite:runs.db"]);
    let prometheus = Scraper::start(&server);
    for _ in 0..RUNS {
        assert_eq!(server.execute("", json!({ "loop": "test" })).json()["status"], "completed");
    }
    let value = |expression: &str| {
        let answer = prometheus.query(expression)?;
        answer["data"]["result"][0]["value"][1].as_str()?.parse::<f64>().ok()
    };
    for (expression, wanted) in [
        ("sum(loopctl_runs_ended_total{status=\"completed\",loop=\"test\"})", f64::from(RUNS)),
        ("sum(loopctl_iterations_total)", f64::from(2 * RUNS)),
        ("max(loopctl_store_up)", 1.0),
        ("sum(loopctl_store_seconds_count{operation=\"append\"}) > bool 0", 1.0),
        ("sum(loopctl_http_request_seconds_count{route=\"/agents/execute\",status=\"2xx\"})", f64::from(RUNS)),
        ("count(process_resident_memory_bytes{job=\"loopctl\"} > 1000000)", 1.0),
    ] {
        while value(expression) != Some(wanted) {
            crate::common::wait_poll_interval();
        }
    }
    for expression in expressions() {
        let answer = prometheus.query(&expression).unwrap();
        assert_eq!(answer["status"], "success", "{expression}: {answer:#}");
    }
    let rules = prometheus.get("/api/v1/rules").unwrap();
    let rules = rules["data"]["groups"][0]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), read(&format!("{FOLDER}/alerts.yml")).matches("- alert:").count(), "{rules:#?}");
}
