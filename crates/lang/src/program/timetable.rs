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

/// The zones of this version.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
/// The zone of a schedule that names none.
const UTC: &str = "UTC";
const MINUTES_OF_DAY: i64 = 24 * 60;
/// The longest time that a zone skips or repeats, in minutes, and some more: islands have changed sides of the date line.
const MAX_SHIFT_MINUTES: i64 = 26 * 60;

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
        let mut low = number(civil.saturating_sub(MAX_SHIFT_MINUTES)).saturating_sub(1);
        let mut high = number(civil.saturating_add(MAX_SHIFT_MINUTES)).saturating_add(1);
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
    number.checked_mul(factor).filter(|minutes| (1..=MAX_INTERVAL_MINUTES).contains(minutes))
}

/// The longest interval: a hundred years.
const MAX_INTERVAL_MINUTES: i64 = 100 * 366 * MINUTES_OF_DAY;

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Zones with shifts of an hour, of half an hour, to the other side of the date line, and without any.
    const SHIFTING: [&str; 7] = [
        "America/New_York",
        "Europe/Berlin",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "Africa/Casablanca",
        "Asia/Kathmandu",
        "UTC",
    ];

    fn table(every: &str, at: Option<&str>, zone: &str) -> Timetable {
        let schedule = Schedule {
            every: every.to_owned(),
            at: at.map(str::to_owned),
            timezone: Some(zone.to_owned()),
            input: None,
        };
        Timetable::of(&schedule).unwrap()
    }

    fn ms(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millisecond()
    }

    /// The next `count` times from a moment on, as texts of UTC.
    fn times(table: &Timetable, from: &str, count: usize) -> Vec<String> {
        let mut now = ms(from) - 1;
        let mut times = Vec::new();
        for _ in 0..count {
            now = table.next(now).unwrap();
            times.push(Timestamp::from_millisecond(now).unwrap().to_string());
        }
        times
    }

    #[test]
    fn times_are_counted_from_a_monday_in_the_zone() {
        assert_eq!(
            times(&table("1d", Some("06:00"), "America/New_York"), "2026-11-22T00:00:00Z", 2),
            ["2026-11-22T11:00:00Z", "2026-11-23T11:00:00Z"]
        );
        // 2026-11-23 is a Monday.
        assert_eq!(
            times(&table("7d", Some("08:30"), "Europe/Berlin"), "2026-11-18T00:00:00Z", 2),
            ["2026-11-23T07:30:00Z", "2026-11-30T07:30:00Z"]
        );
        assert_eq!(
            times(&table("6h", Some("05:00"), "UTC"), "2026-11-22T05:00:00Z", 2),
            ["2026-11-22T06:00:00Z", "2026-11-22T12:00:00Z"],
            "`at` does not move shorter intervals"
        );
        assert_eq!(
            times(&table("36h", None, "UTC"), "1970-01-05T00:00:00Z", 3),
            ["1970-01-05T00:00:00Z", "1970-01-06T12:00:00Z", "1970-01-08T00:00:00Z"]
        );
        assert_eq!(times(&table("1d", None, "UTC"), "1969-12-31T12:00:00Z", 1), ["1970-01-01T00:00:00Z"]);
        assert_eq!(
            table("30m", None, "Asia/Kathmandu").latest(ms("2026-11-22T10:20:00Z")),
            Some(ms("2026-11-22T10:15:00Z"))
        );
    }

    #[test]
    fn a_time_that_is_skipped_is_the_next_that_exists() {
        // 02:30 does not exist on 2026-03-08 in New York: 03:00 EDT follows 02:00 EST.
        assert_eq!(
            times(&table("1d", Some("02:30"), "America/New_York"), "2026-03-07T00:00:00Z", 3),
            ["2026-03-07T07:30:00Z", "2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"]
        );
        assert_eq!(
            times(&table("1d", Some("02:00"), "Europe/Berlin"), "2026-03-29T00:00:00Z", 2),
            ["2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"]
        );
        // Half an hour: 02:15 is skipped on 2026-10-04, and 02:30 follows at once.
        assert_eq!(
            times(&table("1d", Some("02:15"), "Australia/Lord_Howe"), "2026-10-03T12:00:00Z", 2),
            ["2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"]
        );
        // Skipped times that are one moment are one time.
        assert_eq!(
            times(&table("30m", None, "America/New_York"), "2026-03-08T06:30:00Z", 3),
            ["2026-03-08T06:30:00Z", "2026-03-08T07:00:00Z", "2026-03-08T07:30:00Z"]
        );
        // Samoa had no 30 December 2011.
        assert_eq!(
            times(&table("1d", Some("09:00"), "Pacific/Apia"), "2011-12-29T12:00:00Z", 4),
            ["2011-12-29T19:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T19:00:00Z", "2011-12-31T19:00:00Z"]
        );
    }

    #[test]
    fn a_time_that_comes_twice_is_the_first() {
        assert_eq!(
            times(&table("1d", Some("01:30"), "America/New_York"), "2026-11-01T00:00:00Z", 2),
            ["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"]
        );
        assert_eq!(
            times(&table("1d", Some("02:30"), "Europe/Berlin"), "2026-10-25T00:00:00Z", 2),
            ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]
        );
        assert_eq!(
            times(&table("1d", Some("01:45"), "Australia/Lord_Howe"), "2026-04-04T12:00:00Z", 2),
            ["2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"]
        );
    }

    #[test]
    fn intervals_under_a_day_go_on_in_real_time() {
        let twenty = table("20m", None, "Europe/Paris");
        let times_of = |table: &Timetable, from: &str| times(table, from, 4);
        assert_eq!(
            times_of(&twenty, "2026-10-25T00:40:00Z"),
            ["2026-10-25T00:40:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:20:00Z", "2026-10-25T01:40:00Z"]
        );
        let half_hours = table("30m", None, "America/New_York");
        assert_eq!(
            times_of(&half_hours, "2026-11-01T05:00:00Z"),
            ["2026-11-01T05:00:00Z", "2026-11-01T05:30:00Z", "2026-11-01T06:00:00Z", "2026-11-01T06:30:00Z"]
        );
        assert_eq!(half_hours.latest(ms("2026-11-01T06:10:00Z")), Some(ms("2026-11-01T06:00:00Z")));
        // The clock shows 03:00 instead of 02:00, and nothing comes early or twice.
        assert_eq!(
            times_of(&table("45m", None, "Europe/Paris"), "2026-03-29T00:30:00Z"),
            ["2026-03-29T00:30:00Z", "2026-03-29T01:15:00Z", "2026-03-29T02:00:00Z", "2026-03-29T02:45:00Z"]
        );
        // An interval that is longer than what is repeated; the next day begins at midnight of the zone again.
        let two_hours = table("2h", None, "Europe/Paris");
        assert_eq!(
            times_of(&two_hours, "2026-10-25T00:00:00Z"),
            ["2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z", "2026-10-25T04:00:00Z", "2026-10-25T06:00:00Z"]
        );
        assert_eq!(times(&two_hours, "2026-10-25T22:30:00Z", 2), ["2026-10-25T23:00:00Z", "2026-10-26T01:00:00Z"]);
        // A shift of half an hour, which the interval does not divide.
        assert_eq!(
            times_of(&table("20m", None, "Australia/Lord_Howe"), "2026-04-04T14:40:00Z"),
            ["2026-04-04T14:40:00Z", "2026-04-04T15:00:00Z", "2026-04-04T15:20:00Z", "2026-04-04T15:40:00Z"]
        );
        // The first time of the next day, 17:35, makes up for the hour that was skipped more than a day before it.
        assert_eq!(
            times_of(&table("1229m", None, "America/New_York"), "2027-03-14T05:37:00Z"),
            ["2027-03-14T05:37:00Z", "2027-03-15T02:06:00Z", "2027-03-15T21:35:00Z", "2027-03-16T18:04:00Z"]
        );
        // Intervals that a day is no multiple of are counted over days.
        assert_eq!(
            times_of(&table("7h", None, "UTC"), "1970-01-05T14:00:00Z"),
            ["1970-01-05T14:00:00Z", "1970-01-05T21:00:00Z", "1970-01-06T04:00:00Z", "1970-01-06T11:00:00Z"]
        );
    }

    proptest! {
        /// Between two times of an interval under a day is the interval, but for the last one of a day in which the zone
        /// shifts: it is off by the shift at most, and by half of the interval at most, unless the zone skips a day.
        #[test]
        fn real_time_passes_between_the_times_of_a_day(
            zone in proptest::sample::select(&SHIFTING[..]),
            every in 1..1_440_i64,
            from in -2_000_000_000_i64..8_000_000_000,
        ) {
            let table = table(&format!("{every}m"), None, zone);
            let every_ms = every * 60_000;
            let mut time = table.latest(from * 1_000).unwrap();
            for _ in 0..60 {
                let next = table.next(time).unwrap();
                let shift = |at: i64| {
                    let zone = super::zone(zone).unwrap();
                    zone.to_offset(Timestamp::from_millisecond(at).unwrap()).seconds()
                };
                // From the first time of a day to that of the next one are less than two days, and a shift.
                let shifted_ms = (shift(next) - shift(next - 50 * 3_600_000)).abs() * 1_000;
                let off_ms = (next - time - every_ms).abs();
                let skips_a_day = shifted_ms > 12 * 3_600_000;
                prop_assert!(off_ms <= i64::from(shifted_ms), "off by {off_ms} ms at {next}");
                prop_assert!(off_ms * 2 <= every_ms || skips_a_day, "off by {off_ms} ms at {next}");
                time = next;
            }
        }
    }

    #[test]
    fn what_says_no_time_is_none() {
        for every in
            ["", "m", "1", "0m", "1.5h", "-1m", "+1m", "1w", "1s", "90000s", "1 h", "999999999999999999d", "1H", "५m"]
        {
            assert_eq!(minutes(every), None, "{every}");
        }
        for at in ["", "6:00", "24:00", "06:60", "06:00:00", "0a:00", "+6:00", "06-00"] {
            assert_eq!(time_of_day(at), None, "{at}");
        }
        for name in ["", "Europe/Belin", "europe/berlin", "PST", "+01:00", "../etc/passwd", "Local", "Etc/Unknown"] {
            assert!(zone(name).is_none(), "{name}");
        }
        assert!(zone_names().len() > 400 && zone_names().iter().all(|name| name == "UTC" || zone(name).is_some()));
    }

    #[test]
    fn a_stamp_names_a_time_in_utc() {
        assert_eq!(stamp(ms("2026-11-22T11:00:00Z")).as_deref(), Some("20261122T110000Z"));
    }

    proptest! {
        /// Times strictly increase; between two of them nothing is due; and each is due at its own moment.
        #[test]
        fn times_increase_and_none_is_between_two(
            zone in proptest::sample::select(&SHIFTING[..]),
            every in prop_oneof![(1..3_000_i64).prop_map(|n| format!("{n}m")), (1..100_i64).prop_map(|n| format!("{n}h")),
                (1..400_i64).prop_map(|n| format!("{n}d"))],
            at in proptest::option::of((0..24_u8, 0..60_u8)),
            from in -2_000_000_000_i64..8_000_000_000,
            inside in 0..1_000_i64,
        ) {
            let at = at.map(|(hours, minutes)| format!("{hours:02}:{minutes:02}"));
            let table = table(&every, at.as_deref(), zone);
            let mut time = table.latest(from * 1_000).unwrap();
            prop_assert!(time <= from * 1_000);
            for _ in 0..60 {
                let next = table.next(time).unwrap();
                prop_assert!(next > time);
                prop_assert_eq!(table.latest(time), Some(time));
                prop_assert_eq!(table.latest(next - 1), Some(time));
                let between = time + (next - 1 - time) / 1_000 * inside;
                prop_assert_eq!(table.latest(between), Some(time));
                prop_assert_eq!(table.next(between), Some(next));
                time = next;
            }
        }

        /// Around every shift of a zone, each time of each minute of the day comes once a day, and no later than two hours
        /// (or the day that was skipped) after the day before it.
        #[test]
        fn every_day_has_one_time(
            zone in proptest::sample::select(&["America/New_York", "Europe/Berlin", "Australia/Lord_Howe"][..]),
            year in 1971..2060_i64,
            at in (0..24_i64, 0..60_i64),
        ) {
            let table = table("1d", Some(&format!("{:02}:{:02}", at.0, at.1)), zone);
            let mut now = ms(&format!("{year}-01-01T12:00:00Z"));
            let end = ms(&format!("{}-01-01T12:00:00Z", year + 1));
            let days = (end - now) / 86_400_000;
            let mut count = 0;
            loop {
                let next = table.next(now).unwrap();
                if next > end {
                    break;
                }
                let civil = super::zone(zone).unwrap().to_datetime(Timestamp::from_millisecond(next).unwrap());
                let minute = i64::from(civil.hour()) * 60 + i64::from(civil.minute());
                // A skipped time is the moment of the shift: up to an hour later on the clock.
                prop_assert!((0..=60).contains(&(minute - (at.0 * 60 + at.1))), "{civil}");
                count += 1;
                now = next;
            }
            prop_assert!((days - 1..=days + 1).contains(&count), "{count} of {days}");
        }

        #[test]
        fn no_text_makes_it_fail(every in ".{0,8}", at in ".{0,6}", zone in ".{0,20}", now in any::<i64>()) {
            let schedule = Schedule { every, at: Some(at), timezone: Some(zone), input: None };
            if let Some(table) = Timetable::of(&schedule) {
                table.latest(now);
                table.next(now);
            }
            for every in ["1m", "36600d"] {
                let table = table(every, None, "America/New_York");
                table.latest(now);
                table.next(now);
            }
        }
    }
}
