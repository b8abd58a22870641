//! Cleans and limits a model's reply before it is kept: no secrets of the project, and no more than can be
//! read.

use super::secret::Vault;
use loopctl_engine::event::{FailedAttempt, Finish, ModelFault, Reasoning, Reply, SaidCall};
use loopctl_lang::policy::reasoning::MAX_SEALED;

/// The longest reply that is kept, in bytes; longer replies can't be read anyway.
const MAX_REPLY_BYTES: usize = 4 * 1024 * 1024 + 1024;
/// The size of a native call besides its texts, in bytes.
const CALL: usize = 64;

/// The longest name of a model, or category of a refusal, that is kept, in bytes.
const LONGEST_LINE: usize = 200;

/// The gate that every text of a provider passes before it is kept: removes the project's secrets, and bounds the length.
/// A reply that is cut counts as cut off. The patterns name each field, so that a new one can't be left out.
pub(super) fn bound(vault: &Vault, reply: &mut Reply) {
    let Reply {
        text,
        calls,
        reasoning,
        finish,
        response_model,
        refusal,
        attempts,
        // Names and prices of the project, and numbers.
        model: _,
        price: _,
        usage: _,
        window: _,
        duration_ms: _,
        waited_ms: _,
        time_to_first_token_ms: _,
        retries: _,
    } = reply;
    let scrub = |text: &mut String| *text = vault.scrub(std::mem::take(text));
    scrub(text);
    if let Some(reasoning) = reasoning {
        // Where it is from is said by the project.
        let Reasoning { origin: _, sealed: _, text } = &mut **reasoning;
        scrub(text);
        bound_sealed(vault, reasoning);
    }
    for line in [response_model, refusal].into_iter().flatten() {
        *line = bound_line(vault, line).into_boxed_str();
    }
    bound_attempts(vault, attempts);
    let mut size = 0_usize;
    for call in &mut *calls {
        let SaidCall { id, name, arguments } = call;
        [id, name, arguments].into_iter().for_each(scrub);
        size = size.saturating_add(call.size()).saturating_add(CALL);
    }
    if size > MAX_REPLY_BYTES {
        calls.clear();
        *finish = Finish::Length;
    }
    if text.len() > MAX_REPLY_BYTES {
        text.truncate(text.floor_char_boundary(MAX_REPLY_BYTES));
        *finish = Finish::Length;
    }
}

/// The same gate for the fault of a model that gave no reply.
pub(super) fn bound_fault(vault: &Vault, fault: &mut ModelFault) {
    let ModelFault {
        message,
        failed,
        code: _,
        retryable: _,
        attempts: _,
        duration_ms: _,
        window: _,
        prompt_tokens: _,
        spending_limit: _,
        paid_out: _,
    } = fault;
    *message = vault.scrub(std::mem::take(message));
    bound_attempts(vault, failed);
}

/// The same gate for attempts alone.
pub(super) fn bound_attempts(vault: &Vault, attempts: &mut [FailedAttempt]) {
    for attempt in attempts {
        // The model is one of the project.
        let FailedAttempt { reason, model: _, delay_ms: _, usage: _, estimated: _, at_most: _, price: _, in_line: _ } =
            attempt;
        *reason = vault.scrub(std::mem::take(reason));
    }
}

/// The name that a provider gives its model, or what it says of a refusal, in one line.
fn bound_line(vault: &Vault, line: &str) -> String {
    let mut line = vault.scrub(line.to_owned());
    if line.len() > LONGEST_LINE {
        line.truncate(line.floor_char_boundary(LONGEST_LINE));
        line.push('…');
    }
    line
}

/// Drops what can't be kept whole: what is sent back is sent byte for byte, or not at all.
fn bound_sealed(vault: &Vault, reasoning: &mut Reasoning) {
    let sealed = &mut reasoning.sealed;
    if sealed.len() > MAX_SEALED || vault.scrub(sealed.clone()) != *sealed {
        sealed.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use secrecy::SecretString;

    use super::*;
    use loopctl_engine::event::ModelFaultCode;

    const SECRET: &str = "sk-secret-17-of-a-provider";

    fn vault() -> Vault {
        let vault = Vault::new(BTreeMap::new(), Path::new("."));
        vault.keep("KEY", &SecretString::from(SECRET.to_owned())).expect("it is long enough");
        vault
    }

    /// Each text of a provider is the secret.
    fn reply() -> Reply {
        let said = || format!("so: {SECRET}.");
        Reply {
            text: said(),
            calls: vec![SaidCall { id: said(), name: said(), arguments: said() }],
            reasoning: Some(Box::new(Reasoning { origin: String::new(), sealed: said(), text: said() })),
            response_model: Some(said().into()),
            refusal: Some(said().into()),
            attempts: vec![FailedAttempt { reason: said(), ..FailedAttempt::default() }],
            ..Reply::default()
        }
    }

    #[test]
    fn no_text_of_a_reply_and_of_a_fault_keeps_a_secret() {
        let (vault, mut said) = (vault(), reply());
        let before = serde_json::to_string(&said).expect("JSON");
        assert_eq!(before.matches(SECRET).count(), 9, "{before}");
        bound(&vault, &mut said);
        let after = serde_json::to_string(&said).expect("JSON");
        assert!(!after.contains("secret-17"), "{after}");
        assert!(said.response_model.is_some_and(|name| name.starts_with("so: [secret")), "{after}");
        let mut fault = ModelFault {
            code: ModelFaultCode::ModelRefused,
            message: SECRET.to_owned(),
            retryable: false,
            attempts: 1,
            duration_ms: 0,
            failed: reply().attempts,
            window: None,
            prompt_tokens: None,
            spending_limit: None,
            paid_out: false,
        };
        bound_fault(&vault, &mut fault);
        let after = serde_json::to_string(&fault).expect("JSON");
        assert!(!after.contains("secret-17") && after.matches("[secret").count() == 2, "{after}");
    }

    #[test]
    fn an_ordinary_name_stays_and_a_long_one_is_cut() {
        for (name, kept) in [("gpt-5.2-2026-01-01".to_owned(), 18), ("é".repeat(5_000), LONGEST_LINE + "…".len())] {
            let mut said = Reply { response_model: Some(name.clone().into()), ..Reply::default() };
            bound(&vault(), &mut said);
            let bounded = said.response_model.expect("a name");
            assert_eq!((bounded.len(), bounded.chars().next()), (kept, name.chars().next()));
        }
    }
}
