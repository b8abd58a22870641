//! Labels whose values are bounded: no model, no caller and no tenant makes an unlimited number of series.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use prometheus_client::metrics::family::Family;

/// The labels of a series.
pub(in crate::serve) type Labels = Vec<(&'static str, String)>;

/// The value in the place of those that have no series of their own.
pub const OTHER: &str = "other";

/// The most values of one label.
const MAX_VALUES: usize = 100;
/// The most series of one name.
const MAX_SERIES: usize = 2_000;

/// The values of a label that have series of their own.
#[derive(Debug, Default)]
pub struct LabelValues(BTreeSet<String>);

impl LabelValues {
    /// These values, if there are not too many; then the first ones in their order.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let all: BTreeSet<String> = values.into_iter().collect();
        Self(all.into_iter().take(MAX_VALUES).collect())
    }

    /// The value as the label has it.
    pub fn of<'a>(&'a self, value: &str) -> &'a str {
        self.0.get(value).map_or(OTHER, String::as_str)
    }

    /// All values, and the one for the rest.
    pub fn with_other(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str).chain([OTHER])
    }

    /// Whether a value has series of its own.
    pub fn has(&self, value: &str) -> bool {
        self.0.contains(value)
    }
}

/// The series of one name. What would be one more than the most is counted with [`OTHER`] in each of its bounded labels.
pub struct SeriesFamily<M> {
    family: Family<Labels, M, fn() -> M>,
    known: Mutex<BTreeSet<Labels>>,
}

impl<M: Clone> SeriesFamily<M> {
    /// A family of series that are made so.
    pub fn new(constructor: fn() -> M) -> Self {
        Self { family: Family::new_with_constructor(constructor), known: Mutex::default() }
    }

    /// What is registered.
    pub fn family(&self) -> Family<Labels, M, fn() -> M> {
        self.family.clone()
    }

    /// The series with these labels; `bounded` are those of them that a loop, a model or an organisation names.
    pub fn get(&self, labels: Labels, bounded: &[&str]) -> M {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(&labels) {
            return self.family.get_or_create_owned(&labels);
        }
        let labels = if known.len() < MAX_SERIES {
            known.insert(labels.clone());
            labels
        } else {
            let merged = |(name, value)| (name, if bounded.contains(&name) { OTHER.to_owned() } else { value });
            labels.into_iter().map(merged).collect()
        };
        self.family.get_or_create_owned(&labels)
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn of_many_names_the_first_have_series_of_their_own() {
        let values = LabelValues::new((0..1_000).map(|number| format!("loop-{number:04}")));
        assert_eq!((values.of("loop-0099"), values.of("loop-0100"), values.of("a\nb")), ("loop-0099", OTHER, OTHER));
        assert_eq!(values.with_other().count(), MAX_VALUES + 1);
    }

    #[test]
    fn no_combination_of_labels_makes_an_unlimited_number_of_series() {
        let family = SeriesFamily::<Counter>::new(Counter::default);
        for number in 0..10_000 {
            let labels = vec![("loop", format!("l{number}")), ("status", "failed".to_owned())];
            family.get(labels, &["loop"]).inc();
        }
        let merged = family.get(vec![("loop", OTHER.to_owned()), ("status", "failed".to_owned())], &["loop"]);
        let (mut registry, mut text) = (Registry::default(), String::new());
        registry.register("runs", "Runs", family.family());
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        assert_eq!(text.lines().filter(|line| line.starts_with("runs_total{")).count(), MAX_SERIES + 1);
        assert_eq!(merged.get(), 8_000);
    }
}
