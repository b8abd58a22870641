//! The Helm chart: its templates name the values that there are, and the options, routes and metrics of the program.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::complete;
use crate::packaging::compose::{lease_ms, yaml};
use crate::packaging::{after, read, root};
use crate::serve::client::{Serving, place};

const CHART: &str = "packaging/helm/loopctl";

/// All templates, by their names.
fn templates() -> Vec<(String, String)> {
    let folder = root().join(CHART).join("templates");
    let mut all: Vec<(String, String)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap()))
        .collect();
    all.sort();
    assert!(all.len() >= 9, "{all:?}");
    all
}

fn template(name: &str) -> String {
    read(&format!("{CHART}/templates/{name}"))
}

fn values() -> Value {
    yaml(&format!("{CHART}/values.yaml"))
}

/// The words of a text after each `start`, up to a sign that belongs to no name.
fn names_after(text: &str, start: &str) -> Vec<String> {
    let is_name = |sign: char| sign.is_ascii_alphanumeric() || sign == '.' || sign == '_';
    text.split(start).skip(1).map(|rest| rest.split(|sign| !is_name(sign)).next().unwrap().to_owned()).collect()
}

/// The paths of all values that are not objects with fields.
fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value.as_object().filter(|fields| !fields.is_empty()) {
        Some(fields) => fields.iter().for_each(|(name, value)| paths(value, &format!("{path}.{name}"), found)),
        None => drop(found.insert(path.trim_start_matches('.').to_owned())),
    }
}

#[test]
fn every_value_is_used_by_a_template_and_every_template_uses_values_that_there_are() {
    let mut known = BTreeSet::new();
    paths(&values(), "", &mut known);
    let used: BTreeSet<String> = templates()
        .iter()
        .flat_map(|(_, text)| names_after(text, ".Values."))
        .map(|name| name.trim_end_matches('.').to_owned())
        .collect();
    // `env.LOOPCTL_LOG` is used as `.Values.env`, `resources.limits.memory` as `.Values.resources`.
    let covers =
        |short: &str, long: &str| long == short || long.strip_prefix(short).is_some_and(|rest| rest.starts_with('.'));
    for name in &used {
        assert!(known.iter().any(|path| covers(name, path)), "no value `{name}` is in values.yaml");
    }
    for path in &known {
        assert!(used.iter().any(|name| covers(name, path)), "no template uses `{path}`");
    }
}

#[test]
fn the_schema_of_the_values_knows_each_of_them_and_no_other() {
    fn same(value: &Value, schema: &Value, path: &str) {
        let Some(properties) = schema["properties"].as_object() else { return };
        let closed = schema["additionalProperties"] == json!(false);
        assert!(closed, "{path}: a misspelt value must be refused");
        let known: BTreeSet<&String> = properties.keys().filter(|name| *name != "global").collect();
        assert_eq!(value.as_object().unwrap().keys().collect::<BTreeSet<_>>(), known, "{path}");
        properties.iter().for_each(|(name, schema)| same(&value[name], schema, &format!("{path}.{name}")));
    }
    let schema: Value = serde_json::from_str(&read(&format!("{CHART}/values.schema.json"))).unwrap();
    same(&values(), &schema, "");
}

#[test]
fn the_arguments_of_the_containers_are_taken() {
    for name in ["deployment.yaml", "migration.yaml"] {
        let text = template(name);
        let lines = text.split("          args:\n").nth(1).unwrap().lines();
        let list = lines.take_while(|line| line.starts_with("            "));
        let words = list.filter_map(|line| line.trim().strip_prefix("- ")).map(|word| {
            // A number or a name takes the place of what a template puts in.
            let number = word.contains("-ms=") || word.contains("-runs=");
            match word.split_once("{{") {
                Some((start, _)) => format!("{start}{}", if number { "20" } else { "name" }),
                None => word.to_owned(),
            }
        });
        let words: Vec<String> = words.collect();
        assert!(words.len() >= 3, "{name}: {words:?}");
        let output = Command::new(env!("CARGO_BIN_EXE_loopctl")).args(&words).arg("--help").output().unwrap();
        assert!(output.status.success(), "{name}: {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn the_probes_ask_routes_of_the_program_at_the_port_that_it_listens_on() {
    let text = template("deployment.yaml");
    let server = Serving::start(&place(json!({}), &[complete(json!("ok"))]), &["--store", "memory"]);
    for (probe, path) in [("startupProbe", "/healthz"), ("readinessProbe", "/readyz"), ("livenessProbe", "/healthz")] {
        let lines = text.split(&format!("{probe}:\n")).nth(1).unwrap();
        assert_eq!(after(lines, "              path: ").next().unwrap(), [path], "{probe}");
        assert_eq!(after(lines, "              port: ").next().unwrap(), ["http"], "{probe}");
        assert_eq!(server.get(path).status, 200);
    }
    let port = after(&text, "              containerPort: ").next().unwrap().concat();
    let listen = text.lines().find_map(|line| line.trim().strip_prefix("- --listen=0.0.0.0:")).unwrap();
    assert_eq!(port, listen);
}

#[test]
fn a_pod_is_killed_later_than_it_ends_by_itself_and_later_than_its_lease() {
    let values = values();
    assert_eq!(values["store"]["leaseSeconds"].as_u64().unwrap() * 1000, lease_ms());
    let text = template("deployment.yaml");
    let line = text.lines().find(|line| line.contains("terminationGracePeriodSeconds")).unwrap();
    let formula = "add (max (add .Values.drainSeconds .Values.graceSeconds) .Values.store.leaseSeconds) 15";
    assert!(line.contains(formula), "{line}");
    assert!(text.contains("--grace-ms={{ mul .Values.graceSeconds 1000 }}"));
}

#[test]
fn the_autoscaler_counts_what_the_program_counts() {
    let adapter = yaml("packaging/helm/prometheus-adapter.yaml");
    let rule = &adapter["rules"]["external"][0];
    assert_eq!(rule["name"]["as"], values()["autoscaling"]["metric"]);
    let server = Serving::start(&place(json!({}), &[complete(json!("ok"))]), &["--store", "memory"]);
    let metrics = String::from_utf8(server.get("/metrics").body).unwrap();
    let query = rule["metricsQuery"].as_str().unwrap();
    let named: Vec<String> = names_after(query, "loopctl_").into_iter().map(|name| format!("loopctl_{name}")).collect();
    assert_eq!(named, ["loopctl_runs_driven", "loopctl_runs_queued"]);
    for name in named {
        assert!(metrics.lines().any(|line| line.starts_with(&format!("{name} "))), "{name} is not in /metrics");
    }
}

#[test]
fn the_chart_has_the_version_and_the_user_of_the_image() {
    let chart = yaml(&format!("{CHART}/Chart.yaml"));
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
    let user = after(&read("Dockerfile"), "USER ").next().unwrap().concat();
    let values = values();
    let pod = &values["podSecurityContext"];
    for field in ["runAsUser", "runAsGroup", "fsGroup"] {
        let id = pod[field].to_string();
        assert!(user.split(':').any(|part| part == id), "{field}: {id}");
    }
    assert_eq!(
        (&pod["runAsNonRoot"], &values["securityContext"]["readOnlyRootFilesystem"]),
        (&json!(true), &json!(true))
    );
    for name in ["deployment.yaml", "migration.yaml"] {
        let text = template(name);
        for (place, part) in [("      ", "podSecurityContext"), ("          ", "securityContext")] {
            let line = format!("\n{place}securityContext: {{{{- toYaml .Values.{part} |");
            assert!(text.contains(&line), "{name} has no {part}");
        }
        assert!(text.contains("automountServiceAccountToken: false"), "{name}");
    }
}

#[test]
fn the_migration_has_no_account_that_is_made_after_it() {
    let text = template("migration.yaml");
    let hook = text.lines().find(|line| line.contains("helm.sh/hook:")).unwrap();
    assert!(hook.contains("pre-install"), "{hook}");
    let condition = "{{- if and .Values.serviceAccount.name (not .Values.serviceAccount.create) }}";
    assert!(text.contains(&format!("{condition}\n      serviceAccountName: {{{{ .Values.serviceAccount.name }}}}\n")));
    assert!(!text.contains("loopctl.serviceAccount"), "{text}");
}
