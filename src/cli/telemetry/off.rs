//! Replaces spans in a build without the feature `otel`.

use crate::engine::notice::Notice;
use crate::program::Program;

/// Sends nothing.
pub struct Telemetry;

impl Telemetry {
    /// None: this build sends no spans.
    #[expect(clippy::unnecessary_wraps, reason = "the same signature as that of the real one")]
    pub fn of_environment(_program: &Program) -> Result<Option<Self>, String> {
        Ok(None)
    }

    /// Nothing.
    #[expect(clippy::unused_self, reason = "the same signature as that of the real one")]
    pub fn on(&self, _notice: &Notice) {}

    /// Nothing.
    #[expect(clippy::unused_async, reason = "the same signature as that of the real one")]
    pub async fn finish(self) {}
}
