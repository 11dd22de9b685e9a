//! What a server replies.

/// A reply, in the forms that Redis's protocol has (RESP2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resp {
    /// Nothing.
    Nil,
    /// A number.
    Int(i64),
    /// A string.
    Bulk(Vec<u8>),
    /// A word that says how it went, as `OK` does.
    Status(String),
    /// The server's own words about why not.
    Error(String),
    /// An array.
    List(Vec<Resp>),
}

impl From<redis::Value> for Resp {
    /// What a real server replied. Anything that RESP2 does not have is a panic: nobody asks for
    /// more here.
    fn from(value: redis::Value) -> Self {
        match value {
            redis::Value::Nil => Self::Nil,
            redis::Value::Int(number) => Self::Int(number),
            redis::Value::BulkString(bytes) => Self::Bulk(bytes),
            redis::Value::Okay => Self::ok(),
            redis::Value::SimpleString(text) => Self::Status(text),
            redis::Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            redis::Value::ServerError(error) => match error.details() {
                Some(details) => Self::Error(format!("{} {details}", error.code())),
                None => Self::Error(error.code().to_owned()),
            },
            other => panic!("{other:?} is no reply of RESP2"),
        }
    }
}

impl Resp {
    /// The reply of a command that has nothing else to say.
    pub(super) fn ok() -> Self {
        Self::Status("OK".to_owned())
    }

    /// A string, or nothing.
    pub(super) fn text(bytes: Option<&Vec<u8>>) -> Self {
        bytes.map_or(Self::Nil, |bytes| Self::Bulk(bytes.clone()))
    }

    /// How many.
    pub(super) fn count(count: usize) -> Self {
        Self::Int(i64::try_from(count).expect("the count is too large"))
    }
}
