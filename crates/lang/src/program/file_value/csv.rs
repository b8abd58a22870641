//! CSV as RFC 4180 has it. What would lose a value in silence is an error: a quote that is never closed, text behind a
//! closing quote, a row with more or fewer values than there are names.

use std::collections::HashSet;
use std::iter::Peekable;
use std::str::CharIndices;

use serde_json::{Map, Value};

use super::FileFault;
use super::held_value::FileValue;
use super::json::{is_reserved, reserved};
use super::typed_cell::CellTypes;
use super::weight::{MAX_WEIGHT, of_member, of_value, too_heavy};
use crate::language::document_file::TableForm;
use crate::program::bind::run_input::LongListWriter;

/// The rows of a CSV text: its first row has the names. Values are texts, so that no number loses its zeros, unless their columns
/// have types. There is one parsed row at a time.
///
/// # Errors
/// What is wrong with it, and in which line.
pub(super) fn rows(text: &str, form: Option<&TableForm>) -> Result<FileValue, FileFault> {
    let mut list = LongListWriter::default();
    each_row(text, form, &mut |names, values| {
        let members = names.iter().cloned().zip(values);
        list.push(&Value::Object(members.collect::<Map<_, _>>()));
    })?;
    Ok(FileValue::of_list(list))
}

/// About how much memory the rows take as a whole, in bytes.
///
/// # Errors
/// What is wrong with the text, and in which line.
pub(super) fn weight(text: &str, form: Option<&TableForm>) -> Result<usize, FileFault> {
    each_row(text, form, &mut |_, _| {})
}

/// Takes the names and the values of each row. Returns about how much memory all rows take as a whole.
fn each_row(
    text: &str,
    form: Option<&TableForm>,
    take: &mut dyn FnMut(&[String], Vec<Value>),
) -> Result<usize, FileFault> {
    let mut reader = Records { text, chars: text.char_indices().peekable(), line: 1 };
    let names: Vec<String> = match reader.record_but_blank()? {
        Some(Record { fields, .. }) => fields.into_iter().map(|name| name.trim().to_owned()).collect(),
        None => {
            let message = "it is empty: the first row has the names of the columns, also where there are no other rows";
            return Err(FileFault { message: message.to_owned(), line: 1 });
        }
    };
    judge_names(&names)?;
    let types = CellTypes::of(form, &names)?;
    let (mut weight, mut is_first) = (of_value(), true);
    // An empty line is an empty value where a row has one value; elsewhere it is none.
    let is_lone = names.len() == 1;
    while let Some(record) = if is_lone { reader.record()? } else { reader.record_but_blank()? } {
        let Record { fields, line } = record;
        if fields.len() != names.len() {
            let (count, expected) = (fields.len(), names.len());
            let message = format!("the row has {count} values, and the first row has {expected} names");
            return Err(FileFault { message, line });
        }
        if std::mem::take(&mut is_first) {
            judge_row(&names, &fields)?;
        }
        let members = names.iter().zip(&fields).map(|(name, field)| of_member(name) + of_value() + field.len());
        weight = weight.saturating_add(of_value()).saturating_add(members.sum::<usize>());
        if weight > MAX_WEIGHT {
            return Err(too_heavy(line));
        }
        take(&names, types.read(&names, fields, line)?);
    }
    Ok(weight)
}

fn judge_names(names: &[String]) -> Result<(), FileFault> {
    // There may be a million names.
    let mut seen = HashSet::with_capacity(names.len());
    for (at, name) in names.iter().enumerate() {
        let message = match seen.insert(name.as_str()) {
            false => format!("two columns have the name `{name}`"),
            true if is_reserved(name) => reserved(name),
            true if name.is_empty() => format!("column {} has no name", at + 1),
            true => continue,
        };
        return Err(FileFault { message, line: 1 });
    }
    match [';', '\t'].into_iter().find(|sign| signs_in(names, *sign) >= names.len()) {
        Some(sign) => Err(other_separator(sign)),
        None => Ok(()),
    }
}

/// Judges the first row by the names: `id;net,eur` above `1;5,00` is a table of semicolons.
fn judge_row(names: &[String], fields: &[String]) -> Result<(), FileFault> {
    let separates = |sign: char| {
        let count = signs_in(names, sign);
        count > 0 && count >= names.len().saturating_sub(1) && signs_in(fields, sign) == count
    };
    [';', '\t'].into_iter().find(|sign| separates(*sign)).map_or(Ok(()), |sign| Err(other_separator(sign)))
}

fn signs_in(fields: &[String], sign: char) -> usize {
    fields.iter().map(|field| field.matches(sign).count()).sum()
}

fn other_separator(sign: char) -> FileFault {
    FileFault { message: format!("its columns are separated by {sign:?}; loopctl reads commas"), line: 1 }
}

/// A line, or several where a value in quotes has line ends.
struct Record {
    fields: Vec<String>,
    /// Where it begins, from 1.
    line: u64,
}

/// The records of a text.
struct Records<'t> {
    text: &'t str,
    chars: Peekable<CharIndices<'t>>,
    /// The present line, from 1.
    line: u64,
}

/// What is behind a value.
#[derive(PartialEq, Eq)]
enum ValueEnd {
    Value,
    Record,
}

impl Records<'_> {
    /// The next record that is not an empty line.
    fn record_but_blank(&mut self) -> Result<Option<Record>, FileFault> {
        while self.chars.peek().is_some_and(|(_, letter)| matches!(letter, '\n' | '\r')) {
            self.line_end();
        }
        self.record()
    }

    /// The next record; an empty line is one with an empty value.
    fn record(&mut self) -> Result<Option<Record>, FileFault> {
        if self.chars.peek().is_none() {
            return Ok(None);
        }
        let (line, mut fields) = (self.line, Vec::new());
        loop {
            let is_quoted = self.chars.next_if(|(_, letter)| *letter == '"').is_some();
            fields.push(if is_quoted { self.quoted()? } else { self.plain() });
            if self.end_of_value() == ValueEnd::Record {
                return Ok(Some(Record { fields, line }));
            }
        }
    }

    /// A value without quotes around it. A quote within it is a letter like others.
    fn plain(&mut self) -> String {
        let begin = self.chars.peek().map_or(self.text.len(), |(at, _)| *at);
        while self.chars.next_if(|(_, letter)| !matches!(letter, ',' | '\n' | '\r')).is_some() {}
        let end = self.chars.peek().map_or(self.text.len(), |(at, _)| *at);
        self.text.get(begin..end).unwrap_or_default().to_owned()
    }

    /// A value whose opening quote was read, up to behind its closing quote.
    fn quoted(&mut self) -> Result<String, FileFault> {
        let (opened, mut value) = (self.line, String::new());
        let mut before = ' ';
        while let Some((_, letter)) = self.chars.next() {
            match letter {
                '"' if self.chars.next_if(|(_, next)| *next == '"').is_some() => value.push('"'),
                '"' => {
                    return match self.chars.peek() {
                        None | Some((_, ',' | '\n' | '\r')) => Ok(value),
                        Some(_) => {
                            let message = "text stands behind the closing quote of a value; a quote within a value in \
                                           quotes is written twice: \"\"";
                            Err(FileFault { message: message.to_owned(), line: opened })
                        }
                    };
                }
                _ => {
                    if letter == '\r' || (letter == '\n' && before != '\r') {
                        self.line += 1;
                    }
                    value.push(letter);
                }
            }
            before = letter;
        }
        let message = "the quote that opens a value here is never closed; a quote within a value in quotes is written \
                       twice: \"\"";
        Err(FileFault { message: message.to_owned(), line: opened })
    }

    /// Goes over the comma, or the line end, behind a value.
    fn end_of_value(&mut self) -> ValueEnd {
        if self.chars.next_if(|(_, letter)| *letter == ',').is_some() {
            return ValueEnd::Value;
        }
        self.line_end();
        ValueEnd::Record
    }

    /// Goes over a line end: `\n`, `\r\n` or `\r`.
    fn line_end(&mut self) {
        let first = self.chars.next_if(|(_, letter)| matches!(letter, '\n' | '\r'));
        if first.is_some_and(|(_, letter)| letter == '\r') {
            self.chars.next_if(|(_, letter)| *letter == '\n');
        }
        if first.is_some() {
            self.line += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn rows(text: &str) -> Result<Value, FileFault> {
        super::rows(text, None).map(|file| file.whole().into_owned())
    }

    #[test]
    fn an_empty_line_is_a_row_where_a_row_has_one_value() {
        for (text, rows) in [
            ("code\nK1\n\nK3\n", json!([{"code": "K1"}, {"code": ""}, {"code": "K3"}])),
            ("code\r\n\r\nK3", json!([{"code": ""}, {"code": "K3"}])),
            ("code\n\"\"\n", json!([{"code": ""}])),
            ("\n\ncode\nK1", json!([{"code": "K1"}])),
            ("a,b\n1,2\n\n\r\n3,4\n\n", json!([{"a": "1", "b": "2"}, {"a": "3", "b": "4"}])),
            ("a,b\n,\n", json!([{"a": "", "b": ""}])),
        ] {
            assert_eq!(self::rows(text), Ok(rows), "{text:?}");
        }
    }

    #[test]
    fn what_a_quote_would_swallow_is_an_error_with_the_line_where_it_opened() {
        for (text, line, words) in [
            ("a,b\n1,2\nP,\"5/8\"\" pipe\nQ,3\n", 3, "never closed"),
            ("a\n\"x", 2, "never closed"),
            ("a\n\"", 2, "never closed"),
            ("a,b\n\"1\n2\",x\n3,\"y", 4, "never closed"),
            ("a,b\r\n\"1\r\n2\",x\r\n3,\"y", 4, "never closed"),
            ("\"a\nb", 1, "never closed"),
            ("a,b\n1,\"5/8\" pipe\n", 2, "behind the closing quote"),
            ("a,b\n\"1\n\" x,2\n", 2, "behind the closing quote"),
            ("a,b\n\"1\" ,2\n", 2, "behind the closing quote"),
        ] {
            let fault = rows(text).unwrap_err();
            assert_eq!(fault.line, line, "{text:?}: {fault}");
            assert!(fault.message.contains(words), "{text:?}: {fault}");
        }
        let read = json!([{"a": "say \"ja\", \r\nja", "b": "5\" pipe"}]);
        assert_eq!(rows("a,b\r\n\"say \"\"ja\"\", \r\nja\",5\" pipe\r\n"), Ok(read));
    }

    #[test]
    fn a_table_of_semicolons_is_refused_though_a_name_has_a_comma() {
        for text in ["id;betrag,eur\n1;5,00", "id;a\n1;2", "id;name;betrag,eur;x\n", "id\ta,b\tc\n"] {
            assert!(rows(text).unwrap_err().message.contains("are separated by"), "{text:?}");
        }
        assert_eq!(rows("a;b,c\n1,2").unwrap(), json!([{"a;b": "1", "c": "2"}]));
        assert_eq!(rows("id,a;b,c\n1,2,3").unwrap(), json!([{"id": "1", "a;b": "2", "c": "3"}]));
        let fault = rows("id,$serde_json::private::Number\n1,2").unwrap_err();
        assert!(fault.message.contains("is reserved"), "{fault}");
    }

    #[test]
    fn many_names_are_compared_at_once() {
        // Each with each, they would take hours.
        let names: Vec<String> = (0..600_000).map(|number| format!("c{number}")).collect();
        let names = names.join(",");
        assert_eq!(rows(&names), Ok(json!([])));
        let fault = rows(&format!("{names},c599998")).unwrap_err();
        assert_eq!(fault.message, "two columns have the name `c599998`");
    }

    proptest! {
        #[test]
        fn what_is_written_by_the_rules_is_read_back(rows in proptest::collection::vec(("[a\",\n\r é]{0,5}", "[a\",\n\r é]{0,5}"), 0..5)) {
            let quoted = |value: &String| format!("\"{}\"", value.replace('"', "\"\""));
            let lines = rows.iter().map(|(one, other)| format!("{},{}\r\n", quoted(one), quoted(other)));
            let text = std::iter::once("a,b\r\n".to_owned()).chain(lines).collect::<String>();
            let expected: Vec<Value> = rows.iter().map(|(one, other)| json!({"a": one, "b": other})).collect();
            prop_assert_eq!(self::rows(&text), Ok(Value::Array(expected)));
        }
    }
}
