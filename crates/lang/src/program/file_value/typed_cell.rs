//! The values of a table whose columns have types: each is exactly what its type says, or an error.

use jiff::tz::TimeZone;
use serde_json::Value;

use super::FileFault;
use crate::diagnostic::nearest;
use crate::language::document_file::{ColumnType, DecimalMark, EmptyValue, TableForm};
use crate::policy::json_text;
use crate::program::exact_text::{boolean_of, date_of, number_of, time_of};
use crate::syntax::decimal::Decimal;
use crate::syntax::quoted;

/// The most characters of a value in a sentence.
const MAX_SHOWN_CHARACTERS: usize = 60;

/// How the values of each column are read.
pub(super) struct CellTypes {
    /// By column.
    types: Vec<ColumnType>,
    decimal: DecimalMark,
    empty: EmptyValue,
}

impl CellTypes {
    /// Those of a table with these columns.
    ///
    /// # Errors
    /// A column that the table does not have.
    pub fn of(form: Option<&TableForm>, names: &[String]) -> Result<Self, FileFault> {
        let none = TableForm::default();
        let form = form.unwrap_or(&none);
        if let Some(absent) = form.columns.keys().find(|column| !names.contains(column)) {
            let near = nearest(absent, names.iter().map(String::as_str));
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            let message = format!("the first row has no column `{absent}`, which `columns` names{near}");
            return Err(FileFault { message, line: 1 });
        }
        let of = |name: &String| form.columns.get(name).copied().unwrap_or(ColumnType::Text);
        Ok(Self {
            types: names.iter().map(of).collect(),
            decimal: form.decimal.unwrap_or(DecimalMark::Point),
            empty: form.empty.unwrap_or(EmptyValue::Text),
        })
    }

    /// The values of a row.
    ///
    /// # Errors
    /// The first value that is not what its column wants.
    pub fn read(&self, names: &[String], fields: Vec<String>, line: u64) -> Result<Vec<Value>, FileFault> {
        let mut values = Vec::with_capacity(fields.len());
        for ((field, kind), name) in fields.into_iter().zip(&self.types).zip(names) {
            if field.is_empty() && self.empty == EmptyValue::Null {
                values.push(Value::Null);
                continue;
            }
            values.push(match self.cell(*kind, field) {
                Ok(value) => value,
                Err(field) => return Err(self.fault(*kind, name, &field, line)),
            });
        }
        Ok(values)
    }

    /// A value; what is none of the type comes back.
    fn cell(&self, kind: ColumnType, field: String) -> Result<Value, String> {
        let read = match kind {
            ColumnType::Text => return Ok(Value::String(field)),
            ColumnType::Date if date_of(&field).is_some() => return Ok(Value::String(field)),
            ColumnType::Time if date_of(&field).is_none() && time_of(&field, &TimeZone::UTC).is_some() => {
                return Ok(Value::String(field));
            }
            ColumnType::Date | ColumnType::Time => None,
            ColumnType::Boolean => boolean_of(&field).map(Value::Bool),
            ColumnType::Integer => number_of(&field)
                .filter(|number| Decimal::read(&json_text::digits(number)).is_some_and(|number| number.is_whole()))
                .map(Value::Number),
            ColumnType::Number => match self.decimal {
                DecimalMark::Point => number_of(&field),
                DecimalMark::Comma if field.contains('.') => None,
                DecimalMark::Comma => number_of(&field.replace(',', ".")),
            }
            .map(Value::Number),
        };
        read.ok_or(field)
    }

    fn fault(&self, kind: ColumnType, name: &str, field: &str, line: u64) -> FileFault {
        let wanted = match (kind, self.decimal) {
            (ColumnType::Text, _) => "text",
            (ColumnType::Integer, _) => "whole number",
            (ColumnType::Number, DecimalMark::Point) => "number, as `1250.50`",
            (ColumnType::Number, DecimalMark::Comma) => "number with `\"decimal\": \",\"`, as `1250,50`",
            (ColumnType::Boolean, _) => "`true` or `false`",
            (ColumnType::Date, _) => "date, as `2026-12-31`",
            (ColumnType::Time, _) => "date with a time and its offset, as `2026-12-31T10:00:00Z`",
        };
        if field.is_empty() {
            let message =
                format!("`{name}` is empty, and no {wanted}; `\"empty\": \"null\"` reads what is empty as null");
            return FileFault { message, line };
        }
        let shown: String = field.chars().take(MAX_SHOWN_CHARACTERS).collect();
        let more = if shown.len() < field.len() { "..." } else { "" };
        let is_comma = kind == ColumnType::Number && field.contains(',') && !field.contains('.');
        let hint = match is_comma && number_of(&field.replacen(',', ".", 1)).is_some() {
            true => "; `\"decimal\": \",\"` in the document's entry reads a comma before the fraction",
            false => "",
        };
        FileFault { message: format!("`{name}` is {}{more}, and no {wanted}{hint}", quoted(&shown)), line }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::read;
    use super::*;

    fn rows(text: &str, form: Value) -> Result<String, String> {
        let form: TableForm = serde_json::from_value(form).unwrap();
        let value = read("a.csv", text, Some(&form)).map_err(|fault| fault.to_string())?;
        Ok(value.whole().to_string())
    }

    #[cfg(feature = "exact-numbers")]
    #[test]
    fn values_are_exactly_what_their_columns_say() {
        let text = "id,amount,paid,due,at,note\n7,\"1250,50\",true,2026-12-31,2026-12-31T10:00:00+01:00, x \n-1,3,false,2024-02-29,2024-02-29t00:00:00z,\n";
        let columns = json!({ "id": "integer", "amount": "number", "paid": "boolean", "due": "date", "at": "time" });
        let form = json!({ "columns": columns, "decimal": "," });
        let expected = r#"[{"id":7,"amount":1250.50,"paid":true,"due":"2026-12-31","at":"2026-12-31T10:00:00+01:00","note":" x "},{"id":-1,"amount":3,"paid":false,"due":"2024-02-29","at":"2024-02-29t00:00:00z","note":""}]"#;
        assert_eq!(rows(text, form).as_deref(), Ok(expected));
        assert_eq!(
            rows("a,b\n,\n1,x\n", json!({ "columns": { "a": "integer" }, "empty": "null" })).as_deref(),
            Ok(r#"[{"a":null,"b":null},{"a":1,"b":"x"}]"#)
        );
    }

    #[test]
    fn a_value_that_does_not_read_is_an_error_with_its_line() {
        for (cell, kind, why) in [
            ("1.5", "integer", "line 3: `a` is \"1.5\", and no whole number"),
            ("007", "integer", "and no whole number"),
            (" 7", "integer", "and no whole number"),
            ("\"1,5\"", "number", "`a` is \"1,5\", and no number, as `1250.50`"),
            ("1'000", "number", "and no number"),
            ("yes", "boolean", "and no `true` or `false`"),
            ("31.12.2026", "date", "and no date, as `2026-12-31`"),
            ("2026-02-29", "date", "and no date"),
            ("2026-12-31", "time", "and no date with a time"),
            ("", "number", "`a` is empty, and no number"),
        ] {
            let fault =
                rows(&format!("a,b\n1,\n{cell},\n"), json!({ "columns": { "a": "text", "b": "text" } })).map(drop);
            assert_eq!(fault, Ok(()), "{cell}");
            let first = match kind {
                "boolean" => "true",
                "date" => "2026-01-01",
                "time" => "2026-01-01T00:00:00Z",
                _ => "1",
            };
            let fault = rows(&format!("a,b\n{first},\n{cell},\n"), json!({ "columns": { "a": kind } })).unwrap_err();
            assert!(fault.starts_with("line 3: ") && fault.contains(why), "{cell}: {fault}");
        }
        let comma = json!({ "columns": { "a": "number" }, "decimal": "," });
        assert!(rows("a\n1.5\n", comma.clone()).unwrap_err().contains("1250,50"), "a point is no comma");
        assert!(rows("a\n\"1.000,5\"\n", comma).is_err(), "nothing is guessed of groups");
        let absent = rows("amount\n1\n", json!({ "columns": { "amuont": "number" } })).unwrap_err();
        assert_eq!(
            absent,
            "line 1: the first row has no column `amuont`, which `columns` names; did you mean `amount`?"
        );
        let text = read("a.txt", "a", Some(&TableForm::default())).map(drop).unwrap_err();
        assert!(text.message.contains("only a CSV file has columns"), "{text}");
    }
}
