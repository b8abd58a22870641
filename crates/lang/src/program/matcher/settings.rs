//! How a matcher compares entries: what is written of it, judged and made comparable.

use num_bigint::BigUint;

use super::MatchTooLarge;
use super::entry::EntryFacts;
use crate::language::step::{Matcher, ToleranceMode};
use crate::syntax::decimal::Decimal;

/// The places of an amount after the point: finer ones are not compared.
pub(super) const AMOUNT_PLACES: u8 = 18;
const UNITS_OF_ONE: u64 = 1_000_000_000_000_000_000;
/// The most fields in `matchOn`.
const MAX_FIELDS: usize = 32;

/// How entries are compared.
#[derive(Debug)]
pub struct MatchSettings {
    /// The fields that must be equal.
    pub(super) match_on: Vec<String>,
    tolerance: Option<AmountTolerance>,
    /// How many days the dates may be apart.
    days: Option<f64>,
    pub(super) text: Option<TextLikeness>,
}

/// How far amounts may be apart.
#[derive(Debug)]
enum AmountTolerance {
    /// This number of units.
    Absolute(u128),
    /// This number of units for each unit of the larger amount.
    Relative(u128),
}

/// How alike texts must be.
#[derive(Debug)]
pub(super) struct TextLikeness {
    /// The field of the texts.
    pub field: String,
    /// The least share of 100.
    least: f64,
}

impl MatchSettings {
    /// The settings that are written.
    ///
    /// # Errors
    /// A sentence that says which setting is missing, or can't be used.
    pub fn new(written: &Matcher) -> Result<Self, String> {
        let match_on = written.match_on.clone().unwrap_or_default();
        if match_on.is_empty() {
            return Err("`matchOn` is missing: it names the fields that must be equal".to_owned());
        }
        if match_on.len() > MAX_FIELDS {
            return Err(format!("`matchOn` names more than {MAX_FIELDS} fields"));
        }
        if written.rules.as_ref().is_some_and(|rules| !rules.is_empty()) {
            return Err("`rules` can't be used here".to_owned());
        }
        let is_share = written.tolerance_mode == Some(ToleranceMode::Relative);
        let tolerance = match written.tolerance {
            Some(number) => Some(tolerance(number, is_share)?),
            // Who says how amounts are compared wants them compared.
            None if written.tolerance_mode.is_some() => Some(tolerance(0.0, is_share)?),
            None => None,
        };
        if written.date_window_days.is_some_and(|days| days.is_nan() || days < 0.0) {
            return Err("`dateWindowDays` must be 0 or more".to_owned());
        }
        let text = match (written.fuzzy_threshold, &written.description_key) {
            (Some(least), _) if !(0.0..=100.0).contains(&least) => {
                return Err("`fuzzyThreshold` must be from 0 to 100".to_owned());
            }
            (Some(_), None) => return Err("`fuzzyThreshold` needs `descriptionKey`".to_owned()),
            (Some(least), Some(field)) => Some(TextLikeness { field: field.clone(), least }),
            (None, _) => None,
        };
        Ok(Self { match_on, tolerance, days: written.date_window_days, text })
    }

    /// Whether a pair needs two amounts.
    pub(super) fn compares_amounts(&self) -> bool {
        self.tolerance.is_some()
    }

    /// Whether a pair needs two dates.
    pub(super) fn compares_dates(&self) -> bool {
        self.days.is_some()
    }

    /// Whether two entries whose keys are equal may be a pair. `scale`: how many units of a tolerance one unit of their amounts is.
    pub(super) fn allow(
        &self,
        one: &EntryFacts,
        other: &EntryFacts,
        scale: u128,
        text_steps: &mut u64,
    ) -> Result<bool, MatchTooLarge> {
        if self.tolerance.as_ref().is_some_and(|tolerance| !tolerance.allows(one, other, scale)) {
            return Ok(false);
        }
        let apart = |days: u64| f64::from(u32::try_from(days).unwrap_or(u32::MAX));
        if self.days.is_some_and(|most| one.days_between(other).is_none_or(|days| apart(days) > most)) {
            return Ok(false);
        }
        match &self.text {
            Some(likeness) => likeness.allows(one, other, text_steps),
            None => Ok(true),
        }
    }
}

fn tolerance(number: f64, is_share: bool) -> Result<AmountTolerance, String> {
    if !number.is_finite() || number < 0.0 {
        return Err("`tolerance` must be 0 or more".to_owned());
    }
    // The shortest text of a float is what was written. More units than an amount has are no bound.
    let units = Decimal::read(&number.to_string()).and_then(|number| number.units(AMOUNT_PLACES));
    let units = units.map_or(u128::MAX, |units| units.count.unsigned_abs());
    Ok(if is_share { AmountTolerance::Relative(units) } else { AmountTolerance::Absolute(units) })
}

impl AmountTolerance {
    /// What has no amount is not near to anything.
    fn allows(&self, one: &EntryFacts, other: &EntryFacts, scale: u128) -> bool {
        let (Some(gap), Some(first), Some(second)) = (one.amount_gap(other), one.amount, other.amount) else {
            return false;
        };
        match self {
            Self::Absolute(most) => gap.saturating_mul(scale) <= *most,
            Self::Relative(share) => {
                let larger = first.unsigned_abs().max(second.unsigned_abs());
                BigUint::from(gap) * UNITS_OF_ONE <= BigUint::from(*share) * larger
            }
        }
    }
}

impl TextLikeness {
    /// Whether the texts are alike: by the characters that would have to change, as a share of the longer one.
    fn allows(&self, one: &EntryFacts, other: &EntryFacts, steps: &mut u64) -> Result<bool, MatchTooLarge> {
        let (Some(one), Some(other)) = (&one.text, &other.text) else { return Ok(false) };
        let longer = one.length.max(other.length);
        let is_alike = |changes: u32| {
            let same = longer.saturating_sub(changes);
            100.0 * f64::from(same) >= self.least * f64::from(longer)
        };
        if one.text == other.text {
            return Ok(true);
        }
        // The least number of characters that change.
        if !is_alike(one.length.abs_diff(other.length)) {
            return Ok(false);
        }
        let needed = u64::from(one.length) * u64::from(other.length);
        *steps = steps.checked_sub(needed).ok_or(MatchTooLarge::Texts)?;
        Ok(is_alike(u32::try_from(strsim::levenshtein(&one.text, &other.text)).unwrap_or(u32::MAX)))
    }
}
