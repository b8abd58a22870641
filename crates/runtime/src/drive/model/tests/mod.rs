//! Tests of the models, most of them against a server on this machine.

mod calls;
mod constrained;
mod faults;
mod forced;
#[cfg(feature = "simulation")]
mod gate;
mod gemini;
mod look_up;
mod outage;
mod reasoning;
mod replies;
mod requests;
mod responses;
mod scripts;
mod settings;
mod stop_reasons;
mod streams;

#[path = "../../../../../../tests/common/server.rs"]
mod server;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::{Ask, ModelClient, Models, PartialReply, ReplyTimeouts, RetriedAttempt, ScriptPlayer, Wire, ask};
use crate::drive::secret::Vault;
use loopctl_engine::conversation::{Conversation, Role};
use loopctl_engine::event::{ModelFault, Reply};
use loopctl_lang::language::Project;
use loopctl_lang::language::react::Retry;
use server::{Answer, Gate, Server};

/// No key, no address: tests do not depend on the machine that they run on.
fn empty(_: &str) -> Option<String> {
    None
}

fn vault() -> Arc<Vault> {
    Arc::new(Vault::new(BTreeMap::new(), Path::new("/")))
}

fn project(text: &serde_json::Value) -> Project {
    serde_json::from_str(&text.to_string()).unwrap()
}

fn models(project_file: &serde_json::Value) -> Models {
    Models::new(&project(project_file), Path::new("/"), &vault(), None).in_environment(empty)
}

/// The model `m` at a server.
fn openai(server: &Server) -> Arc<ModelClient> {
    at(server, "openai")
}

fn anthropic(server: &Server) -> Arc<ModelClient> {
    at(server, "anthropic")
}

fn at(server: &Server, provider: &str) -> Arc<ModelClient> {
    let url = format!("{}/v1/", server.url());
    models(&serde_json::json!({"models": {"m": {"provider": provider, "base_url": url}}})).get(Some("m")).unwrap()
}

fn conversation(texts: &[(Role, &str)]) -> Conversation {
    let mut conversation = Conversation::default();
    for (role, text) in texts {
        conversation.push(*role, *text);
    }
    conversation
}

fn hello() -> Conversation {
    conversation(&[(Role::System, "Be brief."), (Role::User, "Hello")])
}

fn plain(conversation: &Conversation) -> Ask<'_> {
    Ask { temperature: Some(0.7), ..Ask::lone(conversation, 100) }
}

/// Retries that take no time.
fn retry(attempts: u32) -> Retry {
    Retry { attempts: Some(attempts), for_ms: None, base_ms: 1, max_ms: 1 }
}

/// Sends one model a greeting; returns the failed attempts too.
async fn greet(model: &Arc<ModelClient>, attempts: u32) -> (Result<Reply, ModelFault>, Vec<RetriedAttempt>) {
    greet_all(std::slice::from_ref(model), &mut Wire::default(), attempts).await
}

async fn greet_all(
    models: &[Arc<ModelClient>],
    wire: &mut Wire,
    attempts: u32,
) -> (Result<Reply, ModelFault>, Vec<RetriedAttempt>) {
    let failed = Mutex::new(Vec::new());
    let on_failure = |attempt| failed.lock().unwrap().push(attempt);
    let reply = ask(models, &plain(&hello()), wire, &retry(attempts), &on_failure).await;
    (reply, failed.into_inner().unwrap())
}

/// A project file's script, without its project.
fn script(text: &str) -> Arc<ScriptPlayer> {
    Arc::new(ScriptPlayer::new(serde_json::from_str(text).unwrap()))
}

#[test]
fn a_call_can_move_between_threads() {
    fn is_send(_: impl Send) {}
    let conversation = hello();
    is_send(ask(&[], &plain(&conversation), &mut Wire::default(), &retry(1), &|_| ()));
}

#[tokio::test]
async fn no_model_at_all_is_a_fault_and_no_panic() {
    let (reply, _) = greet_all(&[], &mut Wire::default(), 3).await;
    assert_eq!(reply.unwrap_err().attempts, 0);
}
