//! The types of MySQL and MariaDB that have a form in JSON without loss.

use mysql_async::Column;
use mysql_async::consts::ColumnType;

/// The character set of bytes that are no text.
const BINARY: u16 = 63;

/// The form of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnForm {
    Number,
    Decimal,
    Text,
    Bytes,
    Date,
    /// A date with a time, without a zone.
    DateTime,
    /// A moment.
    Timestamp,
    Time,
    Json,
    /// As many bits.
    Bits(u32),
    Null,
}

impl ColumnForm {
    /// The form of a column.
    ///
    /// # Errors
    /// What is said of a type without one.
    pub(super) fn of(column: &Column) -> Result<Self, String> {
        use ColumnType as Type;
        Ok(match column.column_type() {
            Type::MYSQL_TYPE_TINY
            | Type::MYSQL_TYPE_SHORT
            | Type::MYSQL_TYPE_INT24
            | Type::MYSQL_TYPE_LONG
            | Type::MYSQL_TYPE_LONGLONG
            | Type::MYSQL_TYPE_YEAR
            | Type::MYSQL_TYPE_FLOAT
            | Type::MYSQL_TYPE_DOUBLE => Self::Number,
            Type::MYSQL_TYPE_NEWDECIMAL => Self::Decimal,
            Type::MYSQL_TYPE_DATE => Self::Date,
            Type::MYSQL_TYPE_DATETIME => Self::DateTime,
            Type::MYSQL_TYPE_TIMESTAMP => Self::Timestamp,
            Type::MYSQL_TYPE_TIME => Self::Time,
            Type::MYSQL_TYPE_JSON => Self::Json,
            Type::MYSQL_TYPE_BIT => Self::Bits(column.column_length()),
            Type::MYSQL_TYPE_NULL => Self::Null,
            Type::MYSQL_TYPE_VARCHAR
            | Type::MYSQL_TYPE_VAR_STRING
            | Type::MYSQL_TYPE_STRING
            | Type::MYSQL_TYPE_ENUM
            | Type::MYSQL_TYPE_SET
            | Type::MYSQL_TYPE_TINY_BLOB
            | Type::MYSQL_TYPE_MEDIUM_BLOB
            | Type::MYSQL_TYPE_LONG_BLOB
            | Type::MYSQL_TYPE_BLOB => {
                if column.character_set() == BINARY {
                    Self::Bytes
                } else {
                    Self::Text
                }
            }
            other => {
                let name = format!("{other:?}").trim_start_matches("MYSQL_TYPE_").to_ascii_lowercase();
                return Err(format!("the type `{name}` has no form in JSON without loss"));
            }
        })
    }
}
