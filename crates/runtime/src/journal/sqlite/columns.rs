//! Columns by their names: what is selected is read by numbers that are looked up once for a statement, and what is written
//! gets its text and its parameters from one struct.

use rusqlite::ToSql;

/// The numbers of the columns of a statement.
macro_rules! selected {
    ($(#[$doc:meta])* struct $name:ident { $($column:ident,)* }) => {
        $(#[$doc])*
        struct $name {
            $($column: usize,)*
        }

        impl $name {
            /// The numbers that these columns have in a statement.
            fn of(statement: &rusqlite::Statement<'_>) -> rusqlite::Result<Self> {
                Ok(Self { $($column: statement.column_index(stringify!($column))?,)* })
            }
        }
    };
}
pub(super) use selected;

/// A value that is written, by the name of its parameter.
pub(super) type NamedValue<'a> = (&'static str, &'a dyn ToSql);

/// The columns that a statement writes, each with its parameter.
macro_rules! written {
    ($(#[$doc:meta])* $vis:vis struct $name:ident $(<$life:lifetime>)? {
        $($(#[$of:meta])* $column:ident: $kind:ty,)*
    }) => {
        $(#[$doc])*
        $vis struct $name $(<$life>)? {
            $($(#[$of])* pub $column: $kind,)*
        }

        impl $(<$life>)? $name $(<$life>)? {
            /// The names, for the list of an insertion.
            $vis const NAMES: &'static [&'static str] = &[$(stringify!($column)),*];

            /// The values, each with the name of its parameter.
            $vis fn values(&self) -> Vec<$crate::journal::sqlite::columns::NamedValue<'_>> {
                let values: &[$crate::journal::sqlite::columns::NamedValue<'_>] =
                    &[$((concat!(":", stringify!($column)), &self.$column)),*];
                values.to_vec()
            }
        }
    };
}
pub(super) use written;

/// The columns of an insertion.
pub(super) fn names(columns: &[&str]) -> String {
    columns.join(", ")
}

/// The parameters of an insertion.
pub(super) fn values(columns: &[&str]) -> String {
    columns.iter().map(|column| format!(":{column}")).collect::<Vec<_>>().join(", ")
}

/// The assignments of an update.
pub(super) fn assignments(columns: &[&str]) -> String {
    columns.iter().map(|column| format!("{column} = :{column}")).collect::<Vec<_>>().join(", ")
}
