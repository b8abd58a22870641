//! The spending limits of a project: which account a call belongs to, and which time it counts in.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde::{Deserialize, Serialize};

use super::timetable::zone;
use crate::language::spending_limit::{CalendarWindow, LimitShare, RollingWindow, SpendingLimit, SpendingWindow};
use crate::policy::json_text;

/// Into how many parts the time of a rolling window is cut: what was spent in a part leaves the window with its end.
const ROLLING_PARTS: i64 = 60;
const HOUR_MS: i64 = 3_600_000;

/// The account of all models that no file of the project names: whoever sends agent requests makes no account by a name.
pub const OTHER_MODELS: &str = "other";

/// Who spends: what of a call of a model a limit asks for.
#[derive(Debug, Clone, Copy)]
pub struct Spending<'a> {
    /// The loop or workflow that the run is of.
    pub loop_name: &'a str,
    /// The model.
    pub model: &'a str,
    /// The account of a limit that each model has for itself: the model, or [`OTHER_MODELS`].
    pub share: &'a str,
    /// The organisation that the run belongs to.
    pub org: Option<&'a str>,
}

/// The account that a limit has for a call: one row of the store's ledger. The amounts of the limit are not in it, so that what was
/// spent stays when they change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountName {
    /// The time that the limit is for.
    pub every: SpendingWindow,
    /// The time zone of days and months.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// What has the limit for itself.
    pub per: LimitShare,
    /// Which organisation, loop or model it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The loop that the limit is for.
    #[serde(rename = "loop", default, skip_serializing_if = "Option::is_none")]
    pub loop_name: Option<String>,
    /// The model that the limit is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The organisation that the limit is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
}

impl AccountName {
    /// As the ledger writes it.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The account that a text of the ledger names.
    pub fn read(text: &str) -> Option<Self> {
        json_text::read(text).ok()
    }

    /// The organisation that has the account for itself.
    pub fn organisation(&self) -> Option<&String> {
        self.of.as_ref().filter(|_| self.per == LimitShare::Org).or(self.org.as_ref())
    }

    /// For which time, in words: `a day`, `24 hours`; with the zone where that is not UTC.
    pub fn time(&self) -> String {
        let time = self.time_without_zone();
        match &self.timezone {
            Some(zone) => format!("{time} of {zone}"),
            None => time,
        }
    }

    fn time_without_zone(&self) -> String {
        match self.every {
            SpendingWindow::Calendar(CalendarWindow::Day) => "a day".to_owned(),
            SpendingWindow::Calendar(CalendarWindow::Month) => "a month".to_owned(),
            SpendingWindow::Rolling(RollingWindow { hours: 1 }) => "1 hour".to_owned(),
            SpendingWindow::Rolling(RollingWindow { hours }) => format!("{hours} hours"),
        }
    }

    /// For which time, behind an amount: `100 tokens a day`, `100 tokens in 24 hours`.
    pub fn per_time(&self) -> String {
        match self.every {
            SpendingWindow::Calendar(_) => self.time_without_zone(),
            SpendingWindow::Rolling(_) => format!("in {}", self.time_without_zone()),
        }
    }

    /// Whose it is, in words: `all runs`, ``the loop `triage` and the model `fast` ``.
    pub fn whose(&self) -> String {
        let own = |share: LimitShare| self.of.as_ref().filter(|_| self.per == share);
        let part = |word: &str, name: Option<&String>| name.map(|name| format!("the {word} `{name}`"));
        let parts = [
            part("organisation", self.organisation()),
            part("loop", own(LimitShare::Loop).or(self.loop_name.as_ref())),
            part("model", own(LimitShare::Model).or(self.model.as_ref())),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        match (parts.is_empty(), self.per) {
            (true, LimitShare::Org) => "runs of no organisation".to_owned(),
            (true, _) => "all runs".to_owned(),
            (false, _) => parts.join(" and "),
        }
    }
}

/// The time that what is spent now counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedTime {
    /// A day or a month, in milliseconds since 1970.
    Calendar {
        /// Its first moment.
        from_ms: i64,
        /// The first moment after it.
        until_ms: i64,
    },
    /// The last hours, in parts.
    Rolling {
        /// The length of the window in milliseconds.
        length_ms: i64,
        /// That of a part.
        part_ms: i64,
        /// The first moment of the part that is now.
        now_part_ms: i64,
    },
}

impl SpendingLimit {
    /// Whether what is spent counts.
    pub fn counts(&self, spending: &Spending<'_>) -> bool {
        let is = |wanted: &Option<String>, name: Option<&str>| wanted.as_deref().is_none_or(|it| Some(it) == name);
        is(&self.loop_name, Some(spending.loop_name))
            && is(&self.model, Some(spending.model))
            && is(&self.org, spending.org)
    }

    /// Whether it asks for the organisation of a run.
    pub fn asks_for_org(&self) -> bool {
        self.per == LimitShare::Org || self.org.is_some()
    }

    /// The account of what is spent.
    pub fn account(&self, spending: &Spending<'_>) -> AccountName {
        let of = match self.per {
            LimitShare::All => None,
            LimitShare::Org => spending.org,
            LimitShare::Loop => Some(spending.loop_name),
            LimitShare::Model => Some(spending.share),
        };
        let is_calendar = matches!(self.every, SpendingWindow::Calendar(_));
        AccountName {
            every: self.every,
            timezone: self.timezone.clone().filter(|zone| is_calendar && zone != "UTC"),
            per: self.per,
            of: of.map(str::to_owned),
            loop_name: self.loop_name.clone(),
            model: self.model.clone(),
            org: self.org.clone(),
        }
    }

    /// Whether an account is of this limit, whosever share it is.
    pub fn has_account(&self, account: &AccountName) -> bool {
        let is_calendar = matches!(self.every, SpendingWindow::Calendar(_));
        let zone = self.timezone.as_ref().filter(|zone| is_calendar && *zone != "UTC");
        self.every == account.every
            && self.per == account.per
            && zone == account.timezone.as_ref()
            && (&self.loop_name, &self.model, &self.org) == (&account.loop_name, &account.model, &account.org)
    }

    /// The time in which a moment is, in milliseconds since 1970; none for a moment beyond the calendar, and for a zone that
    /// does not exist, which `check` reports.
    pub fn time_at(&self, now_ms: i64) -> Option<CountedTime> {
        let unit = match self.every {
            SpendingWindow::Rolling(RollingWindow { hours }) => {
                let length_ms = i64::from(hours).max(1).saturating_mul(HOUR_MS);
                let part_ms = (length_ms / ROLLING_PARTS).max(1);
                let now_part_ms = now_ms.div_euclid(part_ms).saturating_mul(part_ms);
                return Some(CountedTime::Rolling { length_ms, part_ms, now_part_ms });
            }
            SpendingWindow::Calendar(unit) => unit,
        };
        let zone = self.timezone.as_deref().map_or(Some(TimeZone::UTC), zone)?;
        let today = Timestamp::from_millisecond(now_ms).ok()?.to_zoned(zone.clone()).date();
        let (first, next) = match unit {
            CalendarWindow::Day => (today, today.tomorrow().ok()?),
            CalendarWindow::Month => (today.first_of_month(), today.last_of_month().tomorrow().ok()?),
        };
        // A zone may begin a day at one o'clock: then it is the first moment of that day.
        let begin =
            |day: jiff::civil::Date| day.to_zoned(zone.clone()).map(|at: Zoned| at.timestamp().as_millisecond());
        Some(CountedTime::Calendar { from_ms: begin(first).ok()?, until_ms: begin(next).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const DAY_MS: i64 = 24 * HOUR_MS;

    fn limit(written: Value) -> SpendingLimit {
        serde_json::from_value(written).unwrap()
    }

    fn ms(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millisecond()
    }

    fn span(written: Value, now: &str) -> (i64, i64) {
        match limit(written).time_at(ms(now)).unwrap() {
            CountedTime::Calendar { from_ms, until_ms } => (from_ms, until_ms),
            CountedTime::Rolling { .. } => panic!("a calendar"),
        }
    }

    #[test]
    fn a_day_and_a_month_are_those_of_the_zone_also_when_the_clocks_change() {
        let day = json!({ "every": "day", "tokens": 1 });
        assert_eq!(span(day, "2026-03-29T23:30:00Z"), (ms("2026-03-29T00:00:00Z"), ms("2026-03-30T00:00:00Z")));
        let berlin = |every: &str| json!({ "every": every, "timezone": "Europe/Berlin", "tokens": 1 });
        // The day that has 23 hours there.
        assert_eq!(
            span(berlin("day"), "2026-03-29T12:00:00Z"),
            (ms("2026-03-28T23:00:00Z"), ms("2026-03-29T22:00:00Z"))
        );
        assert_eq!(
            span(berlin("month"), "2026-03-31T22:30:00Z"),
            (ms("2026-03-31T22:00:00Z"), ms("2026-04-30T22:00:00Z")),
            "it is April there"
        );
        // The day that begins at one o'clock.
        let beirut = json!({ "every": "day", "timezone": "Asia/Beirut", "tokens": 1 });
        let (from_ms, until_ms) = span(beirut, "2026-03-29T12:00:00Z");
        assert_eq!(until_ms - from_ms, DAY_MS - HOUR_MS);
        assert_eq!(limit(json!({ "every": "day", "timezone": "Mars/Base", "tokens": 1 })).time_at(0), None);
    }

    #[test]
    fn the_last_hours_are_cut_into_sixty_parts() {
        let rolling = limit(json!({ "every": { "hours": 2 }, "tokens": 1 }));
        let time = rolling.time_at(2 * HOUR_MS + 130_000).unwrap();
        let expected =
            CountedTime::Rolling { length_ms: 2 * HOUR_MS, part_ms: 120_000, now_part_ms: 2 * HOUR_MS + 120_000 };
        assert_eq!(time, expected);
    }

    #[test]
    fn an_account_is_named_by_the_limit_and_by_whose_it_is_and_not_by_the_amounts() {
        let spending = Spending { loop_name: "triage", model: "fast", share: "fast", org: Some("acme") };
        let account = |written: Value| limit(written).account(&spending);
        let one = account(json!({ "per": "loop", "every": "day", "tokens": 10, "model": "fast" }));
        let more =
            account(json!({ "per": "loop", "every": "day", "cost_usd": 2.5, "model": "fast", "timezone": "UTC" }));
        assert_eq!(one, more);
        assert_eq!(AccountName::read(&one.text()), Some(one.clone()));
        assert_eq!((one.time().as_str(), one.whose().as_str()), ("a day", "the loop `triage` and the model `fast`"));
        let rome =
            account(json!({ "per": "loop", "every": "day", "tokens": 10, "model": "fast", "timezone": "Europe/Rome" }));
        assert_ne!(one, rome);
        assert_eq!((rome.time().as_str(), rome.per_time().as_str()), ("a day of Europe/Rome", "a day"));
        assert_eq!(account(json!({ "every": { "hours": 24 }, "tokens": 1 })).whose(), "all runs");
        let none = Spending { org: None, ..spending };
        assert_eq!(
            limit(json!({ "per": "org", "every": "day", "tokens": 1 })).account(&none).whose(),
            "runs of no organisation"
        );
    }

    #[test]
    fn a_limit_counts_what_it_names_alone() {
        let spending = Spending { loop_name: "triage", model: "fast", share: "fast", org: None };
        let counts = |written: Value| limit(written).counts(&spending);
        assert!(counts(json!({ "every": "day", "tokens": 1 })));
        assert!(counts(json!({ "every": "day", "tokens": 1, "loop": "triage", "model": "fast" })));
        assert!(!counts(json!({ "every": "day", "tokens": 1, "loop": "other" })));
        assert!(!counts(json!({ "every": "day", "tokens": 1, "model": "slow" })));
        assert!(!counts(json!({ "every": "day", "tokens": 1, "org": "acme" })));
    }
}
