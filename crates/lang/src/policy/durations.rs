//! Which durations are plausible: what is shorter than anything that it is about, or a usual number in another unit, is
//! surely meant in that unit.

/// What a time in milliseconds is given to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timed {
    /// A reply of a model, or a run that waits for some.
    Model,
    /// A call of a server that is further away than this machine.
    Server,
    /// A call on this machine, which may be over in a millisecond.
    Local,
    /// A human who reads a question and answers it.
    Human,
}

impl Timed {
    /// The milliseconds below which nothing of the kind is over.
    pub const fn shortest(self) -> u64 {
        match self {
            Self::Model => 1_000,
            Self::Server => 100,
            Self::Local => 0,
            Self::Human => 10_000,
        }
    }

    /// Whether this number of milliseconds is surely meant as seconds.
    pub fn seems_seconds(self, milliseconds: u64) -> bool {
        let usual = match self {
            Self::Local => FEW_SECONDS.contains(&milliseconds),
            Self::Server => false,
            Self::Model | Self::Human => milliseconds == HALF_HOUR,
        };
        usual || milliseconds < self.shortest() || HOURS.contains(&milliseconds)
    }
}

/// The milliseconds that a text with a unit says: `30s`, `2 hours`.
pub fn written_milliseconds(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, word) = text.split_at_checked(text.find(|c: char| !c.is_ascii_digit())?)?;
    let factor: u64 = match word.trim().to_ascii_lowercase().as_str() {
        "ms" | "milliseconds" => 1,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000,
        "m" | "min" | "mins" | "minute" | "minutes" => 60_000,
        "h" | "hr" | "hour" | "hours" => 3_600_000,
        "d" | "day" | "days" => 86_400_000,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// Half an hour in seconds: as milliseconds, a server may have as many.
const HALF_HOUR: u64 = 1_800;
/// The numbers of seconds that people give to a call on this machine, where as many milliseconds are possible too.
const FEW_SECONDS: [u64; 11] = [1, 2, 3, 5, 10, 15, 20, 30, 45, 60, 90];
/// Hours, days and weeks in seconds. As milliseconds they are times that nobody writes: 7.2 seconds, 86.4 seconds.
const HOURS: [u64; 17] = [
    3_600, 7_200, 10_800, 14_400, 21_600, 28_800, 43_200, 64_800, 86_400, 129_600, 172_800, 259_200, 345_600, 432_000,
    604_800, 1_209_600, 2_592_000,
];
/// Minutes and hours in milliseconds. As seconds they are no whole days: 600,000 seconds are 6.9 days.
const MINUTES: [f64; 8] =
    [300_000.0, 600_000.0, 900_000.0, 1_200_000.0, 1_800_000.0, 2_700_000.0, 3_600_000.0, 7_200_000.0];
/// The seconds above which a form would be open for months.
const MONTHS: f64 = 10_000_000.0;
/// A quarter of an hour in milliseconds. Months and years of seconds are hardly ever a multiple of it.
const QUARTER: f64 = 900_000.0;
/// A year in seconds, and how many of them a form may mean.
const YEAR: f64 = 31_536_000.0;
const YEARS: f64 = 100.0;

/// Whether this number of seconds for a human is surely meant as milliseconds.
pub fn seems_milliseconds(seconds: f64) -> bool {
    let is_years = seconds % YEAR == 0.0 && seconds <= YEAR * YEARS;
    MINUTES.contains(&seconds) || (seconds >= MONTHS && seconds % QUARTER == 0.0 && !is_years)
}

#[cfg(test)]
mod tests {
    use super::{Timed, seems_milliseconds};

    #[test]
    fn usual_numbers_of_seconds_are_no_milliseconds_and_plausible_milliseconds_are() {
        for (timed, seconds, plausible) in [
            (Timed::Human, vec![30, 600, 3_600, 7_200, 86_400, 604_800], vec![10_000, 60_000, 300_000, 3_600_000]),
            (Timed::Model, vec![30, 600, 1_800, 7_200, 86_400], vec![1_000, 1_500, 5_000, 90_000, 120_000, 300_000]),
            (Timed::Server, vec![5, 30, 60, 3_600], vec![100, 250, 300, 500, 900, 1_200, 1_800, 30_000]),
            (Timed::Local, vec![1, 30, 60, 7_200], vec![4, 25, 50, 100, 120, 1_800, 10_000]),
        ] {
            for value in seconds {
                assert!(timed.seems_seconds(value), "{timed:?} {value}");
            }
            for value in plausible {
                assert!(!timed.seems_seconds(value), "{timed:?} {value}");
            }
        }
        let milliseconds = [600_000.0, 3_600_000.0, 36_000_000.0, 86_400_000.0, 604_800_000.0, 31_536_000_000.0];
        assert!(milliseconds.into_iter().all(seems_milliseconds));
        assert!(![3_600.0, 86_400.0, 432_000.0, 604_800.0, 2_592_000.0].into_iter().any(seems_milliseconds));
        for days in [120.0, 150.0, 180.0, 365.0, 366.0, 730.0, 1_825.0, 3_650.0, 36_500.0] {
            assert!(!seems_milliseconds(days * 86_400.0), "{days} days");
        }
    }
}
