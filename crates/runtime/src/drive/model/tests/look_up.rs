//! Which model a name means, and what is said when it means none.

use super::*;

fn wrong(models: &Models, name: Option<&str>) -> String {
    models.get(name).unwrap_err()
}

fn environment(file: &serde_json::Value, variable: fn(&str) -> Option<String>) -> Models {
    Models::new(&project(file), Path::new("/"), &vault(), None).in_environment(variable)
}

#[test]
fn without_any_name_it_says_where_to_write_one() {
    let message = wrong(&models(&serde_json::json!({})), None);
    assert!(message.contains("loopctl.json") && !message.contains("--"), "{message}");
}

#[test]
fn the_projects_default_is_taken_and_a_model_is_made_once() {
    let file = serde_json::json!({
        "model": "fast",
        "models": {"fast": {"provider": "openai", "base_url": "http://127.0.0.1:9", "context_tokens": 100,
                            "price": {"input": 1.5, "output": 2.0}}}
    });
    let models = models(&file);
    let model = models.get(None).unwrap();
    assert_eq!((model.facts.name.as_str(), model.facts.context_tokens), ("fast", Some(100)));
    assert!(model.facts.price.is_some());
    assert!(Arc::ptr_eq(&model, &models.get(Some("fast")).unwrap()));
}

#[test]
fn models_that_callers_made_up_are_not_kept_without_end() {
    let server = |name: &str| (name == "OPENAI_BASE_URL").then(|| "http://127.0.0.1:9/v1".to_owned());
    let models = environment(&serde_json::json!({}), server);
    let first = Arc::downgrade(&models.get(Some("made up")).unwrap());
    for number in 0..2_000 {
        models.get(Some(&format!("made up {number}"))).unwrap();
    }
    assert!(first.upgrade().is_none());
    assert_eq!(models.get(Some("made up")).unwrap().facts.name, "made up");
}

#[test]
fn a_provider_that_needs_a_key_says_which_variable() {
    let file = serde_json::json!({"models": {"gpt-4o-small": {"provider": "openai", "base_url": "http://127.0.0.1:9"},
                                             "claude": {"provider": "anthropic"}}});
    let models = models(&file);
    let message = wrong(&models, Some("gpt-4o-smal"));
    for words in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "\"gpt-4o-smal\"", "is named \"gpt-4o-small\""] {
        assert!(message.contains(words), "{message}");
    }
    assert!(wrong(&models, Some("claude")).contains("ANTHROPIC_API_KEY"));
}

#[tokio::test]
async fn an_unknown_name_is_an_id_at_the_server_of_the_environment() {
    static SERVER: std::sync::OnceLock<Server> = std::sync::OnceLock::new();
    SERVER.get_or_init(|| Server::with(|_, _| Answer::openai("Hi")));
    fn variable(name: &str) -> Option<String> {
        (name == "OPENAI_BASE_URL").then(|| format!("{}/v1", SERVER.get().unwrap().url()))
    }
    let model = environment(&serde_json::json!({}), variable).get(Some("llama-3")).unwrap();
    greet(&model, 1).await.0.unwrap();
    let request = &SERVER.get().unwrap().requests()[0];
    assert_eq!((request.path.as_str(), &request.json()["model"]), ("/v1/chat/completions", &"llama-3".into()));
}

#[test]
fn claude_is_asked_at_anthropic_when_only_that_key_is_there() {
    fn only(name: &str) -> Option<String> {
        (name == "ANTHROPIC_API_KEY").then(|| "x".to_owned())
    }
    fn both(name: &str) -> Option<String> {
        ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"].contains(&name).then(|| "x".to_owned())
    }
    let file = serde_json::json!({});
    let provider = |models: Models, name| models.provider_of(name);
    use loopctl_lang::language::project::Provider::{Anthropic, Openai};
    assert_eq!(provider(environment(&file, only), "claude-sonnet-4-5"), Anthropic);
    assert_eq!(provider(environment(&file, both), "claude-sonnet-4-5"), Openai);
    assert_eq!(provider(environment(&file, only), "gpt-4o"), Openai);
}

#[tokio::test]
async fn a_key_of_the_environment_never_goes_where_only_a_project_file_points() {
    fn keyed(name: &str) -> Option<String> {
        (name == "OPENAI_API_KEY").then(|| "sk-of-the-user".to_owned())
    }
    let server = Server::with(|_, _| Answer::openai("Hi"));
    let file = serde_json::json!({"models": {"m": {"provider": "openai", "base_url": server.url()}}});
    greet(&environment(&file, keyed).get(Some("m")).unwrap(), 1).await.0.unwrap();
    assert_eq!(server.requests()[0].header("authorization"), None);
}

#[tokio::test]
async fn an_embedders_key_goes_where_the_key_of_the_environment_would_go() {
    static SERVER: std::sync::OnceLock<Server> = std::sync::OnceLock::new();
    SERVER.get_or_init(|| Server::with(|_, _| Answer::openai("Hi")));
    fn variable(name: &str) -> Option<String> {
        (name == "OPENAI_BASE_URL").then(|| SERVER.get().unwrap().url())
    }
    let server = SERVER.get().unwrap();
    let file = serde_json::json!({"models": {"m": {"provider": "openai", "base_url": server.url()}}});
    let models = environment(&file, variable).with_key("sk-of-the-embedder".to_owned().into());
    greet(&models.get(Some("gpt-5-mini")).unwrap(), 1).await.0.unwrap();
    greet(&models.get(Some("m")).unwrap(), 1).await.0.unwrap();
    let sent: Vec<_> =
        server.requests().iter().map(|request| request.header("authorization").map(str::to_owned)).collect();
    assert_eq!(sent, [Some("Bearer sk-of-the-embedder".to_owned()), None]);
    use loopctl_lang::language::project::Provider::Anthropic;
    assert_eq!(models.provider_of("claude-sonnet-4-5"), Anthropic);
}

#[test]
fn an_invalid_address_is_reported_without_its_password() {
    for (base, words) in [
        ("localhost:8080", "http://"),
        ("ftp://x", "http://"),
        ("", "base_url"),
        ("http://", "base_url"),
        ("http://me:hunter22@127.0.0.1", "api_key"),
    ] {
        let message =
            wrong(&models(&serde_json::json!({"models": {"m": {"provider": "openai", "base_url": base}}})), Some("m"));
        assert!(message.contains(words) && message.contains("base_url of the model \"m\""), "{message}");
        assert!(!message.contains("hunter22"), "{message}");
    }
}

#[tokio::test]
async fn slashes_are_not_doubled_and_a_query_is_kept() {
    let server = Server::with(|_, _| Answer::openai("Hi"));
    for (end, path) in [
        ("", "/chat/completions"),
        ("/", "/chat/completions"),
        ("/v1//", "/v1/chat/completions"),
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("/openai?api-version=7", "/openai/chat/completions?api-version=7"),
    ] {
        let base = format!("{}{end}", server.url());
        let file = serde_json::json!({"models": {"m": {"provider": "openai", "base_url": base}}});
        greet(&models(&file).get(Some("m")).unwrap(), 1).await.0.unwrap();
        assert_eq!(server.requests().last().unwrap().path, path);
    }
}

#[tokio::test]
async fn a_project_may_declare_scripted_models() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("down.json"), r#"{"replies": [{"http": 503}, {"http": 503}]}"#).unwrap();
    std::fs::write(folder.path().join("up.json"), r#"{"replies": ["Hi"]}"#).unwrap();
    let file = serde_json::json!({"models": {
        "down": {"provider": "script", "script": "down.json"}, "up": {"provider": "script", "script": "up.json"},
        "none": {"provider": "script"}, "gone": {"provider": "script", "script": "gone.json"},
    }});
    let models = Models::new(&project(&file), folder.path(), &vault(), None).in_environment(empty);
    let list = ["down", "up"].map(|name| models.get(Some(name)).unwrap());
    let (reply, _) = greet_all(&list, &mut Wire::default(), 2).await;
    let reply = reply.unwrap();
    assert_eq!((reply.text.as_str(), reply.model.as_deref(), reply.retries), ("Hi", Some("up"), 2));
    assert!(wrong(&models, Some("none")).contains("needs \"script\""));
    assert!(wrong(&models, Some("gone")).contains("gone.json"));
}

#[test]
fn a_script_takes_the_place_of_every_model_and_keeps_their_facts() {
    let file = serde_json::json!({"models": {"m": {"provider": "anthropic", "context_tokens": 9}}});
    let models =
        Models::new(&project(&file), Path::new("/"), &vault(), Some(script("{\"replies\": []}"))).in_environment(empty);
    assert_eq!(models.get(Some("m")).unwrap().facts.context_tokens, Some(9));
    assert_eq!(models.get(Some("any")).unwrap().facts.name, "any");
    assert_eq!(models.get(None).unwrap().facts.name, "script");
}
