//! What a matcher reads of an entry: its key, its amount, its date and its text.

use jiff::civil::{Date, date};
use serde_json::{Map, Value};

use super::settings::MatchSettings;
use crate::policy::json_text;
use crate::program::canonical;
use crate::program::exact_text::{date_of, decimal_of};
use crate::syntax::decimal::{Decimal, MAX_UNIT_DIGITS};

/// The field of an amount.
pub(crate) const AMOUNT: &str = "amount";
/// The field of a date.
pub(crate) const DATE: &str = "date";
/// How the names of other fields of dates end.
const DATE_ENDINGS: [&str; 3] = ["_date", "-date", "Date"];
/// The day that days are counted from.
const FIRST_DAY: Date = date(1970, 1, 1);
/// The most characters of a text that are compared.
const MAX_TEXT_CHARACTERS: usize = 200;
/// How deep pairs of pairs are looked into.
pub(crate) const MAX_PAIR_DEPTH: usize = 8;

/// What a matcher reads of an entry.
#[derive(Debug, Default)]
pub(super) struct EntryFacts {
    /// The canonical text of the values of its `matchOn` fields; none when it lacks one.
    pub key: Option<String>,
    /// Its amount, in units of the places that all amounts have.
    pub amount: Option<i128>,
    /// Its date, as a number of days.
    pub day: Option<i64>,
    /// Its text, in lower case and with single spaces.
    pub text: Option<ComparedText>,
}

/// A text that is compared with others.
#[derive(Debug)]
pub(super) struct ComparedText {
    pub text: String,
    /// The number of its characters.
    pub length: u32,
}

/// How far two entries are apart. What has no amount, or no date, is the furthest.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EntryDistance {
    amount: u128,
    days: u64,
}

impl EntryFacts {
    pub(super) fn of(entry: &Value, settings: &MatchSettings, places: u8) -> Self {
        let field = |name: &str| field(entry, 0, &|members| members.get(name));
        let keys: Option<Vec<Value>> = settings.match_on.iter().map(|name| field(name).cloned()).collect();
        let description = settings.text.as_ref().and_then(|text| field(&text.field)?.as_str());
        Self {
            key: keys.filter(|keys| !keys.is_empty()).map(|keys| canonical::spelling(&Value::Array(keys))),
            amount: field(AMOUNT).and_then(|value| units(value, places)),
            day: field(DATE).or_else(|| self::field(entry, 0, &lone_date)).and_then(day),
            text: description.map(ComparedText::of),
        }
    }

    /// How far the amounts are apart, in units.
    pub(super) fn amount_gap(&self, other: &Self) -> Option<u128> {
        Some(self.amount?.abs_diff(other.amount?))
    }

    /// How many days the dates are apart.
    pub(super) fn days_between(&self, other: &Self) -> Option<u64> {
        Some(self.day?.abs_diff(other.day?))
    }

    pub(super) fn distance(&self, other: &Self) -> EntryDistance {
        EntryDistance {
            amount: self.amount_gap(other).unwrap_or(u128::MAX),
            days: self.days_between(other).unwrap_or(u64::MAX),
        }
    }
}

impl ComparedText {
    fn of(text: &str) -> Self {
        let spaced = text.split_whitespace().take(MAX_TEXT_CHARACTERS).collect::<Vec<_>>().join(" ").to_lowercase();
        let text: String = spaced.chars().take(MAX_TEXT_CHARACTERS).collect();
        let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        Self { text, length }
    }
}

/// The value of a field that must be equal; none where an entry lacks it.
pub(super) fn value_of<'v>(entry: &'v Value, name: &str) -> Option<&'v Value> {
    field(entry, 0, &|members| members.get(name))
}

/// A field of an entry. A field of a pair is also found under `a`, then under `b`.
fn field<'v>(
    entry: &'v Value,
    depth: usize,
    get: &impl Fn(&'v Map<String, Value>) -> Option<&'v Value>,
) -> Option<&'v Value> {
    let members = entry.as_object()?;
    let own = get(members).filter(|value| !value.is_null());
    let is_pair = members.len() == 2 && depth < MAX_PAIR_DEPTH;
    own.or_else(|| match (members.get("a"), members.get("b")) {
        (Some(a), Some(b)) if is_pair => field(a, depth + 1, get).or_else(|| field(b, depth + 1, get)),
        _ => None,
    })
}

/// Whether the name of a field says that it is a date.
pub(crate) fn is_date_name(name: &str) -> bool {
    DATE_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// The only field with a date whose name says that it is one.
fn lone_date(members: &Map<String, Value>) -> Option<&Value> {
    let mut dates = members.iter().filter(|(name, value)| is_date_name(name) && day(value).is_some());
    let (_, first) = dates.next()?;
    dates.next().is_none().then_some(first)
}

/// An amount: a number, or a text that is a JSON number.
fn amount(value: &Value) -> Option<Decimal> {
    match value {
        Value::Number(number) => Decimal::read(&json_text::digits(number)),
        Value::String(text) => decimal_of(text),
        _ => None,
    }
}

fn units(value: &Value, places: u8) -> Option<i128> {
    let units = amount(value)?.units(places)?;
    units.is_exact.then_some(units.count)
}

/// The places after the point that the amounts of two lists are counted in: `most`, or fewer where all of them have fewer and one is
/// so large that it needs the digits.
pub(super) fn amount_places(lists: [&[Value]; 2], most: u8) -> u8 {
    let (mut whole, mut fraction) = (0, 0);
    for entry in lists.into_iter().flatten() {
        if let Some(digits) = value_of(entry, AMOUNT).and_then(amount).map(|amount| amount.places()) {
            whole = whole.max(digits.whole);
            if digits.fraction <= i64::from(most) {
                fraction = fraction.max(digits.fraction);
            }
        }
    }
    let free = MAX_UNIT_DIGITS.saturating_sub(whole);
    if free < fraction { most } else { u8::try_from(free).unwrap_or_default().min(most) }
}

/// What is no amount, of entries none of which has one.
pub(super) fn no_amount(list: &[Value]) -> Option<&Value> {
    none_read(list.iter().filter_map(|entry| value_of(entry, AMOUNT)), |value| amount(value).is_some())
}

/// What is no date, of entries none of which has one.
pub(super) fn no_date(list: &[Value]) -> Option<&Value> {
    let date = |entry| value_of(entry, DATE).or_else(|| field(entry, 0, &named_date));
    none_read(list.iter().filter_map(date), |value| day(value).is_some())
}

/// The first field with a value whose name says that it is a date.
fn named_date(members: &Map<String, Value>) -> Option<&Value> {
    members.iter().find(|(name, value)| is_date_name(name) && !value.is_null()).map(|(_, value)| value)
}

/// The first of some values, where none is read.
fn none_read<'v>(values: impl Iterator<Item = &'v Value>, is_read: impl Fn(&Value) -> bool) -> Option<&'v Value> {
    let mut values = values.peekable();
    let first = values.peek().copied()?;
    values.all(|value| !is_read(value)).then_some(first)
}

/// The day of a date, or of a moment as it is written.
fn day(value: &Value) -> Option<i64> {
    let text = value.as_str()?;
    let (written, rest) = text.split_at_checked(10)?;
    if !(rest.is_empty() || rest.starts_with(['T', 't', ' '])) || text.ends_with(char::is_whitespace) {
        return None;
    }
    Some(date_of(written)?.duration_since(FIRST_DAY).as_hours() / 24)
}
