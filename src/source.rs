//! What a client's master is built from.

use std::fmt;
use std::sync::Arc;

use crate::master::Master;

/// A master to build a client with: a server, by its URL, or a [`Master`] of another kind.
#[derive(Clone)]
pub struct Source(pub(crate) Origin);

#[derive(Clone)]
pub(crate) enum Origin {
    Url(String),
    Custom(Arc<dyn Master>),
}

impl From<String> for Source {
    fn from(url: String) -> Self {
        Self(Origin::Url(url))
    }
}

impl From<&str> for Source {
    fn from(url: &str) -> Self {
        url.to_owned().into()
    }
}

impl From<&String> for Source {
    fn from(url: &String) -> Self {
        url.clone().into()
    }
}

impl From<Arc<dyn Master>> for Source {
    fn from(master: Arc<dyn Master>) -> Self {
        Self(Origin::Custom(master))
    }
}

/// Without the URL, which may hold a password.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Origin::Url(_) => f.write_str("***"),
            Origin::Custom(master) => master.fmt(f),
        }
    }
}
