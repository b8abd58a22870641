//! Coverage: what of a document the played runs came to. What a document can come to is computed from its program
//! (`points`), and what a run came to from its events (`reached`).

mod conditions;
mod map;
mod points;
mod reached_points;
mod report;

pub use map::CoverageMap;
pub use points::{CoverageKind, CoverageOutcome, CoveragePoint};
pub use reached_points::reached;
pub use report::{CoverageReport, DocumentCoverage};
