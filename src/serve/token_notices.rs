//! Says in the log which tokens expire soon, which scopes of tokens name no loop of the folder, and which tokens do not read the
//! metrics.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt as _;

use super::app::App;
use super::authorizer::ExpiringToken;
use super::live_folder::LiveFolder;
use crate::drive::clock;
use crate::trace::units::rfc3339;

/// The interval of the looks: who reads a day of the log finds each token.
const NOTICE_INTERVAL: Duration = Duration::from_secs(12 * 60 * 60);

/// Says what is to be known of the tokens of a folder that is served from now on.
pub fn of_folder(served: &LiveFolder) {
    for token in served.authorizer.kept_from_metrics() {
        tracing::warn!(
            token,
            "the token does not read /metrics and /workers, because other tokens have an `org`: give it the scope `metrics`"
        );
    }
    for (token, scope) in served.authorizer.scopes_of_other_loops(|name| served.folder.loops.contains_key(name)) {
        tracing::warn!(token, scope, "the scope of a token names no loop of the folder");
    }
}

/// Looks now, and from then on twice a day.
pub fn watch(app: &Arc<App>) {
    of_folder(&app.served());
    let app: Weak<App> = Arc::downgrade(app);
    tokio::spawn(
        async move {
            loop {
                let Some(app) = app.upgrade().filter(|app| !app.scheduler.is_draining()) else { return };
                for ExpiringToken { name, expires_at_ms, is_over } in app.served().authorizer.expiring(clock::wall_ms())
                {
                    let expires_at = rfc3339(expires_at_ms);
                    if is_over {
                        tracing::warn!(token = name, expires_at, "the token has expired: it is refused");
                    } else {
                        tracing::warn!(token = name, expires_at, "the token expires soon");
                    }
                }
                drop(app);
                tokio::time::sleep(NOTICE_INTERVAL).await;
            }
        }
        .boxed(),
    );
}
