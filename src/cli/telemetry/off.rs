//! Replaces OpenTelemetry in a build without the feature `otel`.

use std::sync::Arc;

use super::TracedProcess;
use crate::drive::run_meter::RunMeters;

/// Sends nothing.
pub struct Telemetry;

impl Telemetry {
    /// None: this build sends nothing, and a server that is asked to says so.
    #[expect(clippy::unnecessary_wraps, reason = "the same signature as that of the real one")]
    pub fn of_environment(process: TracedProcess) -> Result<Option<Self>, String> {
        if matches!(process, TracedProcess::Server) && super::names_collector() {
            tracing::warn!("no spans are sent: this program was built without the feature `otel`");
        }
        Ok(None)
    }

    /// Nothing.
    #[expect(clippy::unused_self, reason = "the same signature as that of the real one")]
    pub fn meters(&self) -> Option<Arc<dyn RunMeters>> {
        None
    }

    /// Nothing.
    #[expect(clippy::unused_async, reason = "the same signature as that of the real one")]
    pub async fn finish(self) {}
}
