//! Arguments: values of JSON as values of the server, exactly. MySQL gives a parameter no type of its own, so the value
//! says it.

use mysql_async::Value as Sql;
use serde_json::Value;

use crate::drive::tool::db::number::{digits, whole};

/// The most digits of a `DECIMAL`, and how many of them behind the point.
const DECIMAL: (i64, i64) = (65, 30);

/// A value for the server.
#[derive(Debug)]
pub(super) struct MysqlArgument {
    pub(super) value: Sql,
    /// What takes the place of the parameter: `?`, or an expression with it.
    pub(super) expression: String,
}

impl MysqlArgument {
    /// The argument for a value: booleans as 1 and 0, arrays and objects as JSON text.
    ///
    /// # Errors
    /// For a number that the server would round.
    pub(super) fn new(value: &Value) -> Result<Self, String> {
        let plain = |value: Sql| Self { value, expression: "?".to_owned() };
        Ok(match value {
            Value::Null => plain(Sql::NULL),
            Value::Bool(yes) => plain(Sql::Int(i64::from(*yes))),
            Value::Number(number) => return of_number(&number.to_string()),
            Value::String(text) => plain(Sql::Bytes(text.clone().into_bytes())),
            composed => plain(Sql::Bytes(composed.to_string().into_bytes())),
        })
    }
}

fn of_number(text: &str) -> Result<MysqlArgument, String> {
    let plain = |value: Sql| MysqlArgument { value, expression: "?".to_owned() };
    if let Some(whole) = whole(text) {
        if let Ok(number) = whole.parse() {
            return Ok(plain(Sql::Int(number)));
        }
        if let Ok(number) = whole.parse() {
            return Ok(plain(Sql::UInt(number)));
        }
    }
    if let Some(argument) = decimal(text) {
        return Ok(argument);
    }
    let real: Option<f64> = text.parse().ok().filter(|real: &f64| real.is_finite());
    let real = real.filter(|real| digits(&format!("{real:e}")) == digits(text));
    real.map(|real| plain(Sql::Double(real))).ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        format!("the number {shown} has more digits than the database keeps")
    })
}

/// A number as a `DECIMAL` that has room for all its digits; none for one that has more than that.
fn decimal(text: &str) -> Option<MysqlArgument> {
    let (most, most_behind) = DECIMAL;
    let (digits, exponent) = digits(text)?;
    let count = i64::try_from(digits.len()).ok()?;
    let behind = exponent.checked_neg()?.max(0);
    let precision = count.max(behind).checked_add(exponent.max(0))?;
    if precision > most || behind > most_behind {
        return None;
    }
    let sign = if text.starts_with('-') { "-" } else { "" };
    let value = Sql::Bytes(format!("{sign}{digits}e{exponent}").into_bytes());
    let precision = precision.max(1);
    Some(MysqlArgument { value, expression: format!("CAST(? AS DECIMAL({precision},{behind}))") })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_number_is_bound_with_all_its_digits_or_not_at_all() {
        let number = |text: &str| MysqlArgument::new(&serde_json::from_str::<Value>(text).unwrap());
        let bytes = |text: &str| Sql::Bytes(text.as_bytes().to_vec());
        for (text, value, expression) in [
            ("7", Sql::Int(7), "?"),
            ("7.0", Sql::Int(7), "?"),
            ("18446744073709551615", Sql::UInt(u64::MAX), "?"),
            ("-18446744073709551615", bytes("-18446744073709551615e0"), "CAST(? AS DECIMAL(20,0))"),
            ("0.10", bytes("1e-1"), "CAST(? AS DECIMAL(1,1))"),
            ("-12.345", bytes("-12345e-3"), "CAST(? AS DECIMAL(5,3))"),
            ("1e300", Sql::Double(1e300), "?"),
            ("0", Sql::Int(0), "?"),
        ] {
            let argument = number(text).unwrap();
            assert_eq!((argument.value, argument.expression.as_str()), (value, expression), "{text}");
        }
        assert!(number(&format!("0.{}1", "1".repeat(70))).is_err());
        assert_eq!(MysqlArgument::new(&json!({"a": [1]})).unwrap().value, bytes("{\"a\":[1]}"));
    }
}
