//! The times of a schedule: a pure function of its interval, its time of the day and its time zone.
//!
//! The times are civil times, counted from Monday 1970-01-05 00:00 in the zone. A time that the zone skips is the next one
//! that exists. One that comes twice is the first of the two. Intervals under a day run in real time from the first of these
//! times of each day: nothing pauses while an hour comes twice.
//!
//! The zones are those of the database that is compiled into the program: every machine with one version finds the same
//! zones and the same times, so that two servers name the same run.

use std::fmt;
use std::sync::LazyLock;

use jiff::civil::{DateTime, date};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

use crate::language::workflow::Schedule;

#[cfg(test)]
mod tests;

/// The zones of this version.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
/// The zone of a schedule that names none.
const UTC: &str = "UTC";
const MINUTES_OF_DAY: i64 = 24 * 60;
/// The longest time that a zone skips or repeats, in minutes, and some more: islands have changed sides of the date line.
const LONGEST_SHIFT: i64 = 26 * 60;

/// The times at which a schedule starts runs.
#[derive(Clone)]
pub struct Timetable {
    every_minutes: i64,
    /// What is added to each time, in minutes.
    at_minutes: i64,
    zone: TimeZone,
}

impl fmt::Debug for Timetable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { every_minutes, at_minutes, zone } = self;
        write!(formatter, "every {every_minutes} min at {at_minutes} min in {}", zone.iana_name().unwrap_or(UTC))
    }
}

impl Timetable {
    /// The times of a schedule; none when it says none, which `check` reports.
    pub fn of(schedule: &Schedule) -> Option<Self> {
        let every_minutes = minutes(&schedule.every)?;
        let at_minutes = match &schedule.at {
            Some(at) => time_of_day(at)?,
            None => 0,
        };
        let zone = zone(schedule.timezone.as_deref().unwrap_or(UTC))?;
        let at_minutes = if every_minutes < MINUTES_OF_DAY { 0 } else { at_minutes };
        Some(Self { every_minutes, at_minutes, zone })
    }

    /// The latest time that is not after a moment, in milliseconds since 1970.
    pub fn latest(&self, now_ms: i64) -> Option<i64> {
        let now = Timestamp::from_millisecond(now_ms).ok()?;
        match self.day(now) {
            Some(day) => Some(day.around(now_ms)?.0),
            None => Some(self.moment(self.latest_number(now)?)?.as_millisecond()),
        }
    }

    /// The first time after a moment, in milliseconds since 1970.
    pub fn next(&self, now_ms: i64) -> Option<i64> {
        let now = Timestamp::from_millisecond(now_ms).ok()?;
        match self.day(now) {
            Some(day) => Some(day.around(now_ms)?.1),
            None => Some(self.moment(self.latest_number(now)?.checked_add(1)?)?.as_millisecond()),
        }
    }

    /// The times as one text: equal texts are equal times.
    pub fn text(&self) -> String {
        format!("{self:?}")
    }

    /// The day of a moment, for intervals under a day; none for longer ones.
    fn day(&self, now: Timestamp) -> Option<RealDay> {
        if self.every_minutes >= MINUTES_OF_DAY {
            return None;
        }
        let civil = self.zone.to_datetime(now).duration_since(monday()).as_secs().div_euclid(60);
        let today = civil.div_euclid(MINUTES_OF_DAY);
        // A zone that changes the side of the date line skips or repeats a day.
        let starts = (today - 3..=today + 3).filter_map(|day| {
            let first = (day * MINUTES_OF_DAY + self.every_minutes - 1).div_euclid(self.every_minutes);
            self.moment(first)
        });
        let mut first = None;
        for start in starts {
            match first {
                _ if start <= now => first = Some(start),
                Some(first) => {
                    let every_ms = self.every_minutes * 60_000;
                    return Some(RealDay {
                        first_ms: first.as_millisecond(),
                        next_ms: start.as_millisecond(),
                        every_ms,
                    });
                }
                None => {}
            }
        }
        None
    }

    /// The number of the latest time that is not after a moment. Later numbers never have earlier moments.
    fn latest_number(&self, now: Timestamp) -> Option<i64> {
        let civil = self.zone.to_datetime(now).duration_since(monday()).as_secs().div_euclid(60);
        let number = |minutes: i64| minutes.saturating_sub(self.at_minutes).div_euclid(self.every_minutes);
        // The moment of `low` is not after now, that of `high` is: the civil time differs from both by more than any shift.
        let mut low = number(civil.saturating_sub(LONGEST_SHIFT)).saturating_sub(1);
        let mut high = number(civil.saturating_add(LONGEST_SHIFT)).saturating_add(1);
        while high.saturating_sub(low) > 1 {
            let middle = low.saturating_add(high.saturating_sub(low) / 2);
            match self.moment(middle) {
                Some(moment) if moment <= now => low = middle,
                _ => high = middle,
            }
        }
        Some(low)
    }

    /// The moment of the time with this number.
    fn moment(&self, number: i64) -> Option<Timestamp> {
        let minutes = number.checked_mul(self.every_minutes)?.checked_add(self.at_minutes)?;
        let civil = monday().checked_add(SignedDuration::from_secs(minutes.checked_mul(60)?)).ok()?;
        match self.zone.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
                offset.to_timestamp(civil).ok()
            }
            AmbiguousOffset::Gap { before, .. } => {
                // By the offset that ended: at or after the moment at which it did.
                let skipped = before.to_timestamp(civil).ok()?.checked_add(SignedDuration::from_secs(1)).ok()?;
                self.zone.preceding(skipped).next().map(|transition| transition.timestamp())
            }
        }
    }
}

/// A day of a schedule with an interval under a day. Its times follow each other in real time from its first one, whatever
/// the zone skips or repeats; the first time of the next day is a civil time again.
#[derive(Debug, Clone, Copy)]
struct RealDay {
    first_ms: i64,
    /// The first time of the day after it.
    next_ms: i64,
    every_ms: i64,
}

impl RealDay {
    /// The latest time that is not after a moment of the day, and the first one after it.
    fn around(self, now_ms: i64) -> Option<(i64, i64)> {
        let Self { first_ms, next_ms, every_ms } = self;
        // No time follows within half an interval: a day that is longer or shorter ends so.
        let last = (next_ms - first_ms - every_ms / 2).div_euclid(every_ms).max(0);
        let number = now_ms.checked_sub(first_ms)?.div_euclid(every_ms).min(last);
        let latest_ms = first_ms + number * every_ms;
        Some((latest_ms, if number < last { latest_ms + every_ms } else { next_ms }))
    }
}

/// The day from which times are counted.
fn monday() -> DateTime {
    date(1970, 1, 5).at(0, 0, 0, 0)
}

/// The minutes of an interval like `30m`, `6h` or `1d`.
pub fn minutes(every: &str) -> Option<i64> {
    let (number, unit) = every.split_at_checked(every.len().checked_sub(1)?)?;
    let factor = match unit {
        "m" => 1,
        "h" => 60,
        "d" => MINUTES_OF_DAY,
        _ => return None,
    };
    let number: i64 = number.parse().ok().filter(|_| number.bytes().all(|byte| byte.is_ascii_digit()))?;
    number.checked_mul(factor).filter(|minutes| (1..=LONGEST_MINUTES).contains(minutes))
}

/// The longest interval: a hundred years.
const LONGEST_MINUTES: i64 = 100 * 366 * MINUTES_OF_DAY;

/// The minutes of the day of a time like `06:30`.
pub fn time_of_day(at: &str) -> Option<i64> {
    let (hours, minutes) = at.split_once(':')?;
    let number = |text: &str, most: i64| {
        let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i64>().ok().filter(|number| digits && *number <= most)
    };
    Some(number(hours, 23)? * 60 + number(minutes, 59)?)
}

/// The zone with this name, in exactly this spelling.
pub fn zone(name: &str) -> Option<TimeZone> {
    if name == UTC {
        return Some(TimeZone::UTC);
    }
    ZONES.get(name).ok().filter(|zone| zone.iana_name() == Some(name))
}

/// The names of all zones.
pub fn zone_names() -> Vec<String> {
    ZONES.available().map(|name| name.to_string()).collect()
}

/// A time as ids of runs have it: `20261122T110000Z`.
pub fn stamp(at_ms: i64) -> Option<String> {
    let at = Timestamp::from_millisecond(at_ms).ok()?;
    Some(at.strftime("%Y%m%dT%H%M%SZ").to_string())
}
