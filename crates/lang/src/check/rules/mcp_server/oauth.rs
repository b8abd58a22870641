//! What a client of an authorization server lacks, or would send to where it may not go.

use super::{RULE, WrittenServer};
use crate::diagnostic::Diagnostic;
use crate::language::mcp::OauthClient;
use crate::program::mcp::oauth_texts;

impl WrittenServer<'_, '_> {
    pub(super) fn oauth(&self, found: &mut Vec<Diagnostic>) {
        let Some(client) = self.server.oauth.as_ref().filter(|_| self.server.url.is_some()) else { return };
        let report = |field: &str, message: String, help: &str| {
            Some(self.at(&format!("/oauth{field}"))?.report(&RULE, message).help(help))
        };
        let name = self.name;
        if client.client_secret.is_none() && client.private_key.is_none() {
            let message = format!("`oauth` of `{name}` has neither a `client_secret` nor a `private_key`");
            found.extend(report("", message, "name its secret: \"client_secret\": \"orgconfig:KEY\""));
        }
        found.extend(match client.issuer.contains(['?', '#']) {
            true => report(
                "/issuer",
                format!("{:?} is no issuer: it has a query or a fragment", client.issuer),
                "write it as the authorization server's metadata has it: https://auth.example.com",
            ),
            false => self.address("/oauth/issuer", &client.issuer),
        });
        if client.client_secret.is_some() && client.private_key.is_some() {
            let message = format!("`oauth` of `{name}` has a `client_secret` and a `private_key`");
            let cursor = self.at("/oauth/client_secret");
            let help = "write the one that the client is registered with";
            found.extend(cursor.map(|cursor| cursor.key().report(&RULE, message).help(help)));
        }
        if client.key_id.is_some() && client.private_key.is_none() {
            found.extend(report(
                "/key_id",
                "`key_id` names a `private_key`, and there is none".to_owned(),
                "take it out",
            ));
        }
        if let Some(header) = self.server.headers.keys().find(|header| header.eq_ignore_ascii_case("authorization")) {
            let message = format!("`{name}` would be sent two tokens: `headers` has `{header}`, too");
            found.extend(report("", message, "take one of the two out"));
        }
        self.credentials(client, found);
        for (index, scope) in client.scopes.iter().enumerate() {
            let is_scope = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
            if scope.is_empty() || !scope.bytes().all(is_scope) {
                let message = format!("{scope:?} is no scope");
                let help = "write each scope as a text of its own, without spaces and quotes";
                found.extend(report(&format!("/scopes/{index}"), message, help));
            }
        }
    }

    /// The texts that say who the client is. A secret is nothing but the name of one.
    fn credentials(&self, client: &OauthClient, found: &mut Vec<Diagnostic>) {
        let mut texts = oauth_texts(client);
        for field in ["client_secret", "private_key"] {
            let Some(text) = texts.get(field) else { continue };
            let key = text.strip_prefix("orgconfig:").unwrap_or_default();
            if !key.is_empty() && !key.contains(char::is_whitespace) {
                continue;
            }
            texts.remove(field);
            let Some(cursor) = self.at(&format!("/oauth/{field}")) else { continue };
            // What is written may be the secret itself, and is not repeated.
            let fault = cursor.report(&RULE, format!("`{field}` is not the name of a secret"));
            found.push(fault.help(
                "name the secret in `orgconfig` (`\"my_key\": \"env:MY_KEY\"`), and write `orgconfig:my_key` here",
            ));
        }
        self.texts("oauth", &texts, found);
    }
}
