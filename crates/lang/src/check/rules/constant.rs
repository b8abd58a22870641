//! What is known of a condition with one outcome.

/// Why a condition has one outcome.
pub(super) struct Constant {
    pub holds: bool,
    /// Where it is reported.
    pub at: String,
    pub why: String,
    /// What to write, where the operator and its operands do not say it.
    pub advice: Option<String>,
    /// The word that was meant, and its help.
    pub meant: Option<String>,
    /// The values that one may have that is compared with another.
    pub values: Option<String>,
    /// Whether a schema bounds the value otherwise.
    pub is_bounded: bool,
    /// Whether it is so in each run that can be expected, and not in each one that is possible.
    pub is_likely: bool,
}

impl Constant {
    pub fn new(holds: bool, at: &str, why: String) -> Self {
        Self {
            holds,
            at: at.to_owned(),
            why,
            advice: None,
            meant: None,
            values: None,
            is_bounded: false,
            is_likely: false,
        }
    }
}
