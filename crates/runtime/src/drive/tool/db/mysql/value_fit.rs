//! Whether a value fits what its parameter meets. A text is never compared with a number: MySQL would read it as 0. And what
//! a column would round or cut is refused, with the column's name.

use mysql_async::consts::{ColumnFlags, ColumnType};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Column, Conn, Error};
use serde_json::Value;

use super::forms::ColumnForm;
use super::parameter_context::{Meeting, MeetingKind};
use crate::drive::tool::db::number::{digits, whole};
use loopctl_lang::policy::json_text;

/// The decimals of a column that has as many as a number needs.
const ANY_DECIMALS: u8 = 31;

/// What a parameter meets, with its type.
pub(super) struct MetColumn {
    form: ColumnForm,
    kind: ColumnType,
    /// How many decimals it has.
    decimals: u8,
    is_choice: bool,
}

impl MetColumn {
    fn of(column: &Column) -> Option<Self> {
        let form = ColumnForm::of(column).ok()?;
        let is_choice = column.flags().intersects(ColumnFlags::ENUM_FLAG | ColumnFlags::SET_FLAG);
        Some(Self { form, kind: column.column_type(), decimals: column.decimals(), is_choice })
    }

    /// What it is, for messages.
    pub(super) fn name(&self) -> &'static str {
        match self.form {
            ColumnForm::Text if self.is_choice => "enum",
            ColumnForm::Text => "text",
            ColumnForm::Bytes => "bytes",
            ColumnForm::Date | ColumnForm::DateTime | ColumnForm::Timestamp => "date",
            ColumnForm::Time => "time",
            ColumnForm::Number | ColumnForm::Decimal => "number",
            ColumnForm::Bits(_) => "bits",
            ColumnForm::Json => "json",
            ColumnForm::Null => "null",
        }
    }

    /// The types of JSON that may be compared with it, as JSON Schema names them; none when all may.
    #[cfg(feature = "probe")]
    pub(super) fn takes(&self) -> &'static [&'static str] {
        match self.form {
            ColumnForm::Text
            | ColumnForm::Bytes
            | ColumnForm::Date
            | ColumnForm::DateTime
            | ColumnForm::Timestamp
            | ColumnForm::Time => &["string"],
            // A text with a number is one.
            ColumnForm::Number | ColumnForm::Decimal | ColumnForm::Bits(_) => {
                &["integer", "number", "boolean", "string"]
            }
            ColumnForm::Json | ColumnForm::Null => &[],
        }
    }

    fn is_whole(&self) -> bool {
        use ColumnType as Type;
        matches!(
            self.kind,
            Type::MYSQL_TYPE_TINY
                | Type::MYSQL_TYPE_SHORT
                | Type::MYSQL_TYPE_INT24
                | Type::MYSQL_TYPE_LONG
                | Type::MYSQL_TYPE_LONGLONG
                | Type::MYSQL_TYPE_YEAR
        )
    }

    /// What is said of a value that may not be compared with it.
    fn not_comparable(&self, value: &Value) -> Option<String> {
        let is_number = matches!(value, Value::Number(_) | Value::Bool(_));
        match self.form {
            ColumnForm::Number | ColumnForm::Decimal | ColumnForm::Bits(_) => {
                let is_text = !is_number && number(value).is_none();
                is_text.then(|| "MySQL reads a text that is no number as 0: give a number".to_owned())
            }
            ColumnForm::Text | ColumnForm::Bytes if is_number => {
                Some("MySQL compares a number with a text as numbers, and most texts are 0: give a text".to_owned())
            }
            ColumnForm::Date | ColumnForm::DateTime | ColumnForm::Timestamp if is_number => {
                Some("give a text, as 2026-01-31".to_owned())
            }
            ColumnForm::Time if is_number => Some("give a text, as 13:30:00".to_owned()),
            _ => None,
        }
    }

    /// What is said of a value of which it would not keep all.
    fn not_kept(&self, value: &Value) -> Option<String> {
        let seconds = |text: &str| text.rsplit_once('.').map_or(0, |(_, rest)| fraction(rest));
        match self.form {
            ColumnForm::Number | ColumnForm::Decimal => {
                let number = number(value)?;
                if self.is_whole() && whole(&number).is_none() {
                    return Some("it keeps whole numbers, and would round this one".to_owned());
                }
                let (_, exponent) = digits(&number)?;
                if self.decimals < ANY_DECIMALS && !self.is_whole() && exponent < -i64::from(self.decimals) {
                    return Some(format!("it keeps {} decimals, and would round the others", self.decimals));
                }
                let same = |kept: String| digits(&kept) == digits(&number);
                let is_exact = match self.kind {
                    ColumnType::MYSQL_TYPE_FLOAT => number.parse::<f32>().is_ok_and(|real| same(format!("{real:e}"))),
                    ColumnType::MYSQL_TYPE_DOUBLE => number.parse::<f64>().is_ok_and(|real| same(format!("{real:e}"))),
                    _ => true,
                };
                (!is_exact).then(|| "it keeps fewer digits, and would round this number".to_owned())
            }
            ColumnForm::DateTime | ColumnForm::Timestamp | ColumnForm::Time => {
                let kept = usize::from(self.decimals);
                let is_cut = value.as_str().is_some_and(|text| seconds(text) > kept);
                is_cut.then(|| format!("it keeps {kept} digits of the fraction of a second, and would cut the others"))
            }
            _ => None,
        }
    }
}

/// The digits of a fraction, without the zeros at their end.
fn fraction(rest: &str) -> usize {
    let digits = rest.find(|c: char| !c.is_ascii_digit()).and_then(|end| rest.get(..end)).unwrap_or(rest);
    digits.trim_end_matches('0').len()
}

/// The digits of a number, or of a text that is one.
fn number(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(yes) => Some(if *yes { "1" } else { "0" }.to_owned()),
        // `05` is a number of MySQL, and none of JSON.
        Value::String(text) => {
            let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |digits| ("-", digits));
            let cut = digits.trim_start_matches('0');
            let zero = if cut.starts_with(|c: char| c.is_ascii_digit()) || digits.is_empty() { "" } else { "0" };
            Some(format!("{sign}{zero}{cut}")).filter(|text| json_text::is_number(text))
        }
        _ => None,
    }
}

/// Whether the type of what a value meets matters for it.
fn matters(kind: MeetingKind, value: &Value) -> bool {
    match (kind, value) {
        (_, Value::Null) => false,
        (MeetingKind::Compared, Value::String(_)) => number(value).is_none(),
        (MeetingKind::Compared, _) => true,
        (MeetingKind::Written, Value::String(text)) => text.contains('.') || text.len() > 15,
        // A number of 7 digits is kept by every column for numbers.
        (MeetingKind::Written, Value::Number(number)) => {
            number.to_string().bytes().any(|b| !b.is_ascii_digit() && b != b'-') || number.to_string().len() > 7
        }
        (MeetingKind::Written, _) => false,
    }
}

/// What is wrong with a value, if what it meets has a type that it does not fit.
///
/// # Errors
/// That of a connection that is lost.
pub(super) async fn refusal(server: &mut Conn, meeting: &Meeting, value: &Value) -> Result<Option<String>, Error> {
    if !matters(meeting.kind, value) {
        return Ok(None);
    }
    let Some(column) = column(server, meeting).await? else { return Ok(None) };
    let why = match meeting.kind {
        MeetingKind::Compared => column.not_comparable(value),
        MeetingKind::Written => column.not_kept(value),
    };
    let named: String = meeting.expression.chars().take(80).collect();
    Ok(why.map(|why| format!("it meets `{named}`, which is of type {}: {why}", column.name())))
}

/// The type of what a parameter meets; none where the server does not say.
///
/// # Errors
/// That of a connection that is lost.
pub(super) async fn column(server: &mut Conn, meeting: &Meeting) -> Result<Option<MetColumn>, Error> {
    for lookup in &meeting.lookups {
        match server.prep(lookup.as_str()).await {
            Ok(statement) => {
                let column = statement.columns().get(meeting.column).and_then(MetColumn::of);
                server.close(statement).await?;
                return Ok(column);
            }
            // A column of a query around it, or something that only the whole query makes sense of.
            Err(Error::Server(error)) if !super::failure::is_lost(&Error::Server(error.clone())) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn column(form: ColumnForm, kind: ColumnType, decimals: u8) -> MetColumn {
        MetColumn { form, kind, decimals, is_choice: false }
    }

    #[test]
    fn a_text_is_not_compared_with_a_number() {
        let text = column(ColumnForm::Text, ColumnType::MYSQL_TYPE_VAR_STRING, 0);
        let number = column(ColumnForm::Number, ColumnType::MYSQL_TYPE_LONG, 0);
        for (column, value, is_refused) in [
            (&text, json!(0), true),
            (&text, json!(false), true),
            (&text, json!("0"), false),
            (&number, json!("abc"), true),
            (&number, json!(""), true),
            (&number, json!("7 "), true),
            (&number, json!([7]), true),
            (&number, json!("007"), false),
            (&number, json!("-1.5"), false),
            (&number, json!(true), false),
        ] {
            assert_eq!(column.not_comparable(&value).is_some(), is_refused, "{value} for {}", column.name());
        }
    }

    #[test]
    fn what_a_column_would_round_or_cut_is_refused() {
        let whole = column(ColumnForm::Number, ColumnType::MYSQL_TYPE_LONG, 0);
        let decimal = column(ColumnForm::Decimal, ColumnType::MYSQL_TYPE_NEWDECIMAL, 2);
        let float = column(ColumnForm::Number, ColumnType::MYSQL_TYPE_FLOAT, ANY_DECIMALS);
        let moment = column(ColumnForm::DateTime, ColumnType::MYSQL_TYPE_DATETIME, 3);
        for (column, value, is_refused) in [
            (&whole, json!(1.5), true),
            (&whole, json!("1.5"), true),
            (&whole, json!(2.0), false),
            (&decimal, json!(1.005), true),
            (&decimal, json!("1.10"), false),
            (&decimal, json!(1.5), false),
            (&float, json!(16_777_217), true),
            (&float, json!(0.1), false),
            (&moment, json!("2026-01-31T10:00:00.1234"), true),
            (&moment, json!("2026-01-31T10:00:00.123000"), false),
        ] {
            assert_eq!(column.not_kept(&value).is_some(), is_refused, "{value}");
        }
    }
}
