//! What a script replied.

use std::sync::Arc;

/// A script's reply, in the four forms that Lua can give it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Nothing: Lua's `nil` or `false`.
    Nil,
    /// A number, without its fraction.
    Int(i64),
    /// A string.
    Text(Arc<str>),
    /// An array.
    List(Vec<Value>),
}

impl Value {
    /// The items, if this is an array.
    pub fn list(&self) -> Option<&[Value]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// The text, if this is a string.
    pub fn text(&self) -> Option<&Arc<str>> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if this is one, or a string that holds one.
    pub fn int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            Self::Text(text) => text.parse().ok(),
            _ => None,
        }
    }
}
