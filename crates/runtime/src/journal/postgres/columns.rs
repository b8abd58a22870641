//! Parameters by their names: of one struct, the text of a statement gets its numbers, and the statement its parameters.
//!
//! In a text, `$me` is the parameter of this name, `$a` is a table `a` of the arrays of a set of columns, `$a.values` are these
//! arrays, `$a.names` their names, and `$a.run` is one of them.

use std::collections::HashMap;

use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::connection::Parameter;

/// A value that a parameter can hold, alone or in an array.
pub(super) trait ParameterValue: ToSql + Sync {
    /// The name of its type.
    const SQL: &'static str;
    /// Its type.
    fn sql() -> Type;
    /// The type of an array of it.
    fn sql_array() -> Type;
}

macro_rules! parameter_value {
    ($($kind:ty: $name:literal $one:ident $many:ident;)*) => {
        $(impl ParameterValue for $kind {
            const SQL: &'static str = $name;

            fn sql() -> Type {
                Type::$one
            }

            fn sql_array() -> Type {
                Type::$many
            }
        })*
    };
}

parameter_value! {
    bool: "bool" BOOL BOOL_ARRAY;
    i16: "smallint" INT2 INT2_ARRAY;
    i32: "int" INT4 INT4_ARRAY;
    i64: "bigint" INT8 INT8_ARRAY;
    f64: "float8" FLOAT8 FLOAT8_ARRAY;
    Uuid: "uuid" UUID UUID_ARRAY;
    String: "text" TEXT TEXT_ARRAY;
    &str: "text" TEXT TEXT_ARRAY;
    Vec<u8>: "bytea" BYTEA BYTEA_ARRAY;
    &[u8]: "bytea" BYTEA BYTEA_ARRAY;
}

impl<T: ParameterValue> ParameterValue for Option<T> {
    const SQL: &'static str = T::SQL;

    fn sql() -> Type {
        T::sql()
    }

    fn sql_array() -> Type {
        T::sql_array()
    }
}

/// A column of a set: its name and that of its type.
pub(super) struct NamedColumn {
    pub name: &'static str,
    pub sql: &'static str,
}

/// What a part of the parameters is.
pub(super) enum PartShape {
    /// One value, of this type.
    Value(&'static str),
    /// A set of columns.
    Columns(&'static [NamedColumn]),
}

/// A part of the parameters of a statement.
pub(super) trait ParameterPart {
    const SHAPE: PartShape;
    fn add_to<'a>(&'a self, parameters: &mut Vec<Parameter<'a>>);
}

impl<T: ParameterValue> ParameterPart for T {
    const SHAPE: PartShape = PartShape::Value(T::SQL);

    fn add_to<'a>(&'a self, parameters: &mut Vec<Parameter<'a>>) {
        parameters.push((self, T::sql()));
    }
}

/// A set of columns: arrays of one length.
macro_rules! columns {
    ($(#[$doc:meta])* $vis:vis struct $name:ident $(<$life:lifetime>)? {
        $($(#[$of:meta])* $column:ident: $kind:ty,)*
    }) => {
        $(#[$doc])*
        #[derive(Default)]
        $vis struct $name $(<$life>)? {
            $($(#[$of])* pub $column: Vec<$kind>,)*
        }

        impl $(<$life>)? $crate::journal::postgres::columns::ParameterPart for $name $(<$life>)? {
            const SHAPE: $crate::journal::postgres::columns::PartShape =
                $crate::journal::postgres::columns::PartShape::Columns(&[
                    $($crate::journal::postgres::columns::NamedColumn {
                        name: stringify!($column),
                        sql: <$kind as $crate::journal::postgres::columns::ParameterValue>::SQL,
                    }),*
                ]);

            fn add_to<'of>(&'of self, parameters: &mut Vec<$crate::journal::postgres::connection::Parameter<'of>>) {
                $(parameters.push((
                    &self.$column,
                    <$kind as $crate::journal::postgres::columns::ParameterValue>::sql_array(),
                ));)*
            }
        }
    };
}
pub(super) use columns;

/// What statements take: values and sets of columns, in the order of their numbers.
macro_rules! statement_parameters {
    ($(#[$doc:meta])* $vis:vis struct $name:ident $(<$life:lifetime>)? {
        $($(#[$of:meta])* $part:ident: $kind:ty,)*
    }) => {
        $(#[$doc])*
        $vis struct $name $(<$life>)? {
            $($(#[$of])* pub $part: $kind,)*
        }

        impl $(<$life>)? $name $(<$life>)? {
            /// A statement with these parameters, as far as its text names them.
            $vis fn statement(text: &str) -> $crate::journal::postgres::columns::NumberedStatement {
                $crate::journal::postgres::columns::NumberedStatement::new(
                    text,
                    &[$((
                        stringify!($part),
                        <$kind as $crate::journal::postgres::columns::ParameterPart>::SHAPE,
                    )),*],
                )
            }

            /// All parameters, in the order of their numbers.
            $vis fn parameters(&self) -> Vec<$crate::journal::postgres::connection::Parameter<'_>> {
                let mut parameters = Vec::new();
                $($crate::journal::postgres::columns::ParameterPart::add_to(&self.$part, &mut parameters);)*
                parameters
            }
        }
    };
}
pub(super) use statement_parameters;

/// A statement whose parameters have their numbers.
pub(super) struct NumberedStatement {
    text: String,
    /// The types of the parameters that it takes: those up to the last one that it names.
    types: Vec<String>,
}

impl NumberedStatement {
    /// The statement of a text, with the names of its parameters in their order.
    pub(super) fn new(text: &str, parts: &[(&str, PartShape)]) -> Self {
        let mut words: HashMap<String, (String, usize)> = HashMap::new();
        let mut number = 0;
        let mut types = Vec::new();
        for (part, shape) in parts {
            let columns = match shape {
                PartShape::Columns(columns) => *columns,
                PartShape::Value(sql) => {
                    number += 1;
                    types.push((*sql).to_owned());
                    words.insert((*part).to_owned(), (format!("${number}"), number));
                    continue;
                }
            };
            let (mut values, mut names) = (Vec::new(), Vec::new());
            for column in columns {
                number += 1;
                types.push(format!("{}[]", column.sql));
                let value = format!("${number}::{}[]", column.sql);
                words.insert(format!("{part}.{}", column.name), (value.clone(), number));
                values.push(value);
                names.push(column.name);
            }
            let (values, names) = (values.join(", "), names.join(", "));
            words.insert((*part).to_owned(), (format!("unnest({values}) AS {part}({names})"), number));
            words.insert(format!("{part}.values"), (values, number));
            words.insert(format!("{part}.names"), (names, 0));
        }
        let mut pieces = text.split('$');
        let mut numbered = Self { text: pieces.next().unwrap_or_default().to_owned(), types: Vec::new() };
        let mut last = 0;
        for piece in pieces {
            let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            let (name, rest) = piece.split_at(piece.find(|c| !is_of_name(c)).unwrap_or(piece.len()));
            match words.get(name) {
                Some((word, number)) => {
                    numbered.text.push_str(word);
                    last = last.max(*number);
                }
                // The database refuses the text: a test sends each statement.
                None => numbered.text.extend(["$", name]),
            }
            numbered.text.push_str(rest);
        }
        types.truncate(last);
        Self { types, ..numbered }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The parameters that it takes, of all.
    pub(super) fn taken<'p, 'a>(&self, all: &'p [Parameter<'a>]) -> &'p [Parameter<'a>] {
        all.get(..self.types.len()).unwrap_or(all)
    }

    /// The types of the parameters that it takes.
    #[cfg(test)]
    pub(super) fn types(&self) -> &[String] {
        &self.types
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    columns! {
        struct Rows<'a> {
            run: i64,
            name: Option<&'a str>,
        }
    }

    statement_parameters! {
        struct All<'a> {
            me: Uuid,
            a: Rows<'a>,
            last: f64,
        }
    }

    #[test]
    fn a_text_gets_the_numbers_of_the_parameters_that_it_names() {
        let all = All { me: Uuid::nil(), a: Rows { run: vec![1], name: vec![None] }, last: 0.5 };
        let parameters = all.parameters();
        let types: Vec<Type> = parameters.iter().map(|(_, of)| of.clone()).collect();
        assert_eq!(types, [Type::UUID, Type::INT8_ARRAY, Type::TEXT_ARRAY, Type::FLOAT8]);
        for (text, expected, taken) in [
            ("SELECT $me", "SELECT $1", 1),
            ("SELECT * FROM $a, b", "SELECT * FROM unnest($2::bigint[], $3::text[]) AS a(run, name), b", 3),
            ("x($a.names) AS ($a.values, $last)", "x(run, name) AS ($2::bigint[], $3::text[], $4)", 4),
            ("ANY ($a.run)", "ANY ($2::bigint[])", 2),
            ("a = '$' || $a.none", "a = '$' || $a.none", 0),
        ] {
            let statement = All::statement(text);
            assert_eq!(statement.text(), expected);
            assert_eq!(statement.taken(&parameters).len(), taken, "{text}");
        }
    }
}
