//! The masters of a client: as its user names them, and as they are once checked.

use std::fmt;
use std::sync::Arc;

use crate::admin::doctor::{Facts, Unasked, Visit, examine};
use crate::config::MAX_MASTERS;
use crate::invalid::Invalid;
#[cfg(feature = "redis")]
use crate::link::ConnectionInfo;
use crate::link::{Address, Dialler, Master, PasswordCallback};

/// A master to build a client with: a server's URL, or one that a test kit makes.
#[derive(Clone)]
pub struct Source(Origin);

#[derive(Clone)]
enum Origin {
    Url(String),
    #[cfg(feature = "redis")]
    Connection(Box<ConnectionInfo>),
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

/// What the redis crate connects to, with its user, password and database. Certificates of a
/// client, and TLS without checks, are refused by [`build`](crate::Builder::build).
#[cfg(feature = "redis")]
impl From<ConnectionInfo> for Source {
    fn from(info: ConnectionInfo) -> Self {
        Self(Origin::Connection(info.into()))
    }
}

impl From<Arc<dyn Master>> for Source {
    fn from(master: Arc<dyn Master>) -> Self {
        Self(Origin::Custom(master))
    }
}

/// Omits the URL, which may contain a password.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Origin::Url(_) => f.write_str("***"),
            #[cfg(feature = "redis")]
            Origin::Connection(info) => info.addr().fmt(f),
            Origin::Custom(master) => master.fmt(f),
        }
    }
}

/// A server's address, or another master.
pub(crate) enum Checked {
    Address(Address),
    Custom(Arc<dyn Master>),
}

impl Checked {
    /// Examines it, if it is a server.
    pub(crate) async fn examine(&self, dialler: &Dialler, visit: &Visit) -> Facts {
        let (master, server) = match self {
            Self::Address(address) => (address.name(), examine(address, dialler, visit).await),
            Self::Custom(master) => (master.name(), Err(Unasked::NoServer)),
        };
        Facts { master: master.clone(), server }
    }

    /// Its address, if it is a server.
    pub(crate) fn address(&self) -> Option<&Address> {
        match self {
            Self::Address(address) => Some(address),
            Self::Custom(_) => None,
        }
    }

    fn is_same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Address(one), Self::Address(other)) => one.same_server(other),
            (Self::Custom(one), Self::Custom(other)) => one.name() == other.name(),
            _ => false,
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Address(address) => address.endpoint().to_string(),
            Self::Custom(master) => master.name().to_string(),
        }
    }
}

pub(crate) fn check(
    sources: Vec<Source>,
    password_from: Option<&PasswordCallback>,
) -> Result<Vec<Checked>, Invalid> {
    match sources.len() {
        0 => return Err(Invalid::no_masters(MAX_MASTERS)),
        count if count > MAX_MASTERS => return Err(Invalid::too_many_masters(count, MAX_MASTERS)),
        _ => {}
    }
    let mut all: Vec<Checked> = Vec::new();
    for Source(origin) in sources {
        let checked = match origin {
            Origin::Url(url) => Checked::Address(Address::parse(&url, password_from)?),
            #[cfg(feature = "redis")]
            Origin::Connection(info) => Checked::Address(Address::of(&info, password_from)?),
            Origin::Custom(master) => Checked::Custom(master),
        };
        if all.iter().any(|known| known.is_same_as(&checked)) {
            return Err(Invalid::duplicate_master(&checked.name()));
        }
        all.push(checked);
    }
    Ok(all)
}
