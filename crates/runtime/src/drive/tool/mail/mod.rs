//! Texts that are sent by mail: one message to all addresses of a target, over TLS, or over nothing else than the loopback.
//! The `Message-ID` is that of the call, so that a message which is sent again is the same one.

#[cfg(feature = "email")]
mod message;
#[cfg(feature = "email")]
mod smtp;
#[cfg(feature = "email")]
mod stream;

use std::sync::Arc;

use serde_json::Value;

#[cfg(feature = "email")]
use self::smtp::MailLogin;
use super::output::fault;
use super::runner::{RawFault, RawOutcome, ToolRunner, wrong_kind};
use crate::drive::egress::Egress;
use crate::drive::future::BoxFuture;
use crate::drive::secret::Vault;
use crate::drive::tool::call::ToolCall;
#[cfg(not(feature = "email"))]
use loopctl_lang::policy::mail::NO_EMAIL;
#[cfg(feature = "email")]
use loopctl_lang::program::reference::Unresolved;
#[cfg(feature = "email")]
use loopctl_lang::program::template::Template;
use loopctl_lang::program::{MailTool, Tool, ToolKind};

/// Sends mails.
#[cfg_attr(not(feature = "email"), expect(dead_code, reason = "this build sends none"))]
pub(super) struct MailRunner {
    egress: Egress,
    vault: Arc<Vault>,
}

impl ToolRunner for MailRunner {
    fn call<'a>(&'a self, tool: &'a Tool, call: &'a ToolCall<'a>) -> BoxFuture<'a, RawOutcome> {
        match &tool.kind {
            ToolKind::Mail(mail) => Box::pin(async move { self.send(mail, call).await.into() }),
            _ => wrong_kind(tool),
        }
    }
}

impl MailRunner {
    pub(super) fn new(egress: Egress, vault: &Arc<Vault>) -> Self {
        Self { egress, vault: Arc::clone(vault) }
    }

    #[cfg(not(feature = "email"))]
    #[expect(clippy::unused_async, reason = "a build with mails awaits")]
    async fn send(&self, _mail: &MailTool, _call: &ToolCall<'_>) -> Result<Value, RawFault> {
        Err(fault("not sent", NO_EMAIL).into())
    }

    /// Sends a message. A server that refuses for now (4xx), or can't be reached, is asked again.
    #[cfg(feature = "email")]
    async fn send(&self, mail: &MailTool, call: &ToolCall<'_>) -> Result<Value, RawFault> {
        let login =
            self.login(mail, call).map_err(|missing| fault("a value is missing or can't be used", missing.why))?;
        let text = call.input.get("text").and_then(Value::as_str).unwrap_or_default();
        let message = message::of(mail, text, &call.key()).map_err(|why| fault("not sent", why))?;
        let stream = stream::connect(&self.egress, &mail.smtp).await?;
        smtp::send(stream, login, &message).await
    }

    /// The name and the password of a target. Its secrets are read now: files change.
    #[cfg(feature = "email")]
    fn login(&self, mail: &MailTool, call: &ToolCall<'_>) -> Result<MailLogin, Unresolved> {
        let scope = call.scope(&self.vault);
        let render = |template: Option<&Template>| template.map(|template| template.render(&scope)).transpose();
        Ok(MailLogin { user: render(mail.username.as_ref())?, password: render(mail.password.as_ref())? })
    }
}
