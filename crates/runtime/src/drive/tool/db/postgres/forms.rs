//! The types of PostgreSQL that have a form in JSON without loss.

use tokio_postgres::types::{Kind, Type};

/// The form of a type. A domain has that of its base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TypeForm {
    Bool,
    Integer,
    /// 4 bytes without a sign.
    Oid,
    /// 4 bytes.
    Real,
    /// 8 bytes.
    Double,
    Numeric,
    Text,
    Bytes,
    Date,
    Time,
    TimeWithZone,
    Timestamp,
    TimestampWithZone,
    Interval,
    Uuid,
    Json,
    JsonBinary,
    Bits,
    Network,
    /// No value: what a function gives that returns nothing.
    Void,
    Array(Box<TypeForm>),
}

impl TypeForm {
    /// The types of JSON that an argument of this form may have, as JSON Schema names them; none when it may have all.
    #[cfg(feature = "probe")]
    pub(super) fn takes(&self) -> &'static [&'static str] {
        match self {
            Self::Bool => &["boolean"],
            // A text with a number is one.
            Self::Integer | Self::Oid | Self::Real | Self::Double | Self::Numeric => &["integer", "number", "string"],
            Self::Json | Self::JsonBinary | Self::Void => &[],
            Self::Array(_) => &["array"],
            _ => &["string"],
        }
    }

    /// The form of a built-in type; [`super::server_types`] has those of the others.
    ///
    /// # Errors
    /// What is said of a type without one.
    pub(super) fn of(of: &Type) -> Result<Self, String> {
        // The element of a built-in array is no array.
        if let Kind::Array(element) = of.kind() {
            return Ok(Self::Array(Box::new(Self::of(element)?)));
        }
        Ok(match *of {
            Type::BOOL => Self::Bool,
            Type::INT2 | Type::INT4 | Type::INT8 => Self::Integer,
            Type::OID => Self::Oid,
            Type::FLOAT4 => Self::Real,
            Type::FLOAT8 => Self::Double,
            Type::NUMERIC => Self::Numeric,
            Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN | Type::XML | Type::CHAR => {
                Self::Text
            }
            Type::BYTEA => Self::Bytes,
            Type::DATE => Self::Date,
            Type::TIME => Self::Time,
            Type::TIMETZ => Self::TimeWithZone,
            Type::TIMESTAMP => Self::Timestamp,
            Type::TIMESTAMPTZ => Self::TimestampWithZone,
            Type::INTERVAL => Self::Interval,
            Type::UUID => Self::Uuid,
            Type::JSON => Self::Json,
            Type::JSONB => Self::JsonBinary,
            Type::BIT | Type::VARBIT => Self::Bits,
            Type::INET | Type::CIDR => Self::Network,
            Type::VOID => Self::Void,
            _ => return Err(format!("the type `{}` has no form in JSON without loss", of.name())),
        })
    }
}
