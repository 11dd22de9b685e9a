//! Where a master is: its URL, read once, with the password kept out of everything that can be
//! printed.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo};

use super::password::{PasswordCallback, PasswordSource};
use crate::invalid::Invalid;

/// A master's address and credentials. Neither `Debug` nor [`Address::name`] shows user or
/// password.
#[derive(Clone)]
pub(crate) struct Address {
    name: Arc<str>,
    endpoint: Endpoint,
    /// Has no password if that is read somewhere.
    login: RedisConnectionInfo,
    password: Option<PasswordSource>,
}

/// Where to connect to. Two addresses with the same endpoint are one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Tcp { host: String, port: u16, tls: bool },
    Unix(PathBuf),
}

const NO_TLS: &str = "this build has no TLS: it needs the feature `tls`";
const INSECURE: &str = "a certificate is always checked: give its root instead";

impl Address {
    /// Reads a URL. Where it has no password and names no file with one, `password_from` is asked.
    pub(crate) fn parse(url: &str, password_from: Option<&PasswordCallback>) -> Result<Self, Invalid> {
        let invalid = |why: &str| Invalid::url(&redacted(url), why);
        let (scheme, rest) = url.split_once("://").ok_or_else(|| invalid("it has no scheme"))?;
        let (plain, tls) = match scheme {
            "redis" | "valkey" => ("redis", false),
            "rediss" | "valkeys" => ("redis", true),
            "unix" | "redis+unix" | "valkey+unix" => ("unix", false),
            _ => return Err(invalid("its scheme is none of redis(s), valkey(s) and unix")),
        };
        if tls && cfg!(not(feature = "tls")) {
            return Err(invalid(NO_TLS));
        }
        if tls && rest.contains("#insecure") {
            return Err(invalid(INSECURE));
        }
        // TLS is ours (see dial.rs), so the parser is only shown plain URLs.
        let plain = format!("{plain}://{rest}");
        let info = plain.as_str().into_connection_info().map_err(|error| invalid(&reason(&error)))?;
        if let Some(why) = unused_part(&plain) {
            return Err(invalid(&why));
        }
        Self::new(&info, tls, password_file(&plain), password_from, &invalid)
    }

    /// The address that the redis crate connects to. If it has no password, `password_from` is
    /// asked.
    #[cfg(feature = "redis")]
    pub(crate) fn of(
        info: &ConnectionInfo,
        password_from: Option<&PasswordCallback>,
    ) -> Result<Self, Invalid> {
        let invalid = |why: &str| Invalid::url(&info.addr().to_string(), why);
        let tls = match info.addr() {
            ConnectionAddr::TcpTls { insecure: true, .. } => return Err(invalid(INSECURE)),
            ConnectionAddr::TcpTls { tls_params: Some(_), .. } => {
                return Err(invalid("it has certificates of its own: give their root with `tls_root`"));
            }
            ConnectionAddr::TcpTls { .. } => true,
            _ => false,
        };
        if tls && cfg!(not(feature = "tls")) {
            return Err(invalid(NO_TLS));
        }
        Self::new(info, tls, None, password_from, &invalid)
    }

    fn new(
        info: &ConnectionInfo,
        tls: bool,
        password_file: Option<PathBuf>,
        password_from: Option<&PasswordCallback>,
        invalid: &dyn Fn(&str) -> Invalid,
    ) -> Result<Self, Invalid> {
        let endpoint = match info.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                Endpoint::Tcp { host: host.to_ascii_lowercase(), port: *port, tls }
            }
            ConnectionAddr::Unix(path) => Endpoint::Unix(path.clone()),
            _ => return Err(invalid("it is of a form that is not supported")),
        };
        let mut login = info
            .redis_settings()
            .clone()
            .set_protocol(ProtocolVersion::RESP3)
            .set_lib_name("quorate", env!("CARGO_PKG_VERSION"));
        if login.db() < 0 {
            return Err(invalid("its database number is negative"));
        }
        let password = match (login.password(), password_file) {
            (Some(_), Some(_)) => {
                return Err(invalid("it has a password and a password_file: give one of them"));
            }
            (Some(_), None) => None,
            (None, Some(file)) => Some(PasswordSource::File(file)),
            (None, None) => password_from.cloned().map(PasswordSource::Callback),
        };
        // A server lets in a user without a password (`nopass`) with any, and refuses every other.
        if login.username().is_some() && login.password().is_none() && password.is_none() {
            login = login.set_password("");
        }
        let name = match (login.db(), &endpoint) {
            (0, _) => endpoint.to_string(),
            (db, Endpoint::Tcp { .. }) => format!("{endpoint}/{db}"),
            (db, Endpoint::Unix(_)) => format!("{endpoint}?db={db}"),
        };
        Ok(Self { name: name.into(), endpoint, login, password })
    }

    /// The address of a master that joins the set of another one. Where its URL has no user and
    /// password of its own, those of the other one are used, but never without TLS where that has
    /// it.
    pub(crate) fn joining(url: &str, other: &Self) -> Result<Self, Invalid> {
        let mut address = Self::parse(url, None)?;
        let is_bare = |endpoint: &Endpoint| matches!(endpoint, Endpoint::Tcp { tls: false, .. });
        if is_bare(&address.endpoint) && !is_bare(&other.endpoint) {
            let why = "it is without TLS, and the masters that this client was given are not";
            return Err(Invalid::url(&address.name, why));
        }
        if address.login.username().is_none()
            && address.login.password().is_none()
            && address.password.is_none()
        {
            let db = address.login.db();
            address.login = other.login.clone().set_db(db);
            address.password = other.password.clone();
        }
        Ok(address)
    }

    /// The URL without user, password and database.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// What to log in with now.
    pub(super) async fn login(&self) -> Result<RedisConnectionInfo, String> {
        let login = self.login.clone();
        match &self.password {
            Some(source) => Ok(login.set_password(source.read(&self.name).await?)),
            None => Ok(login),
        }
    }

    /// Where the password is read, if it is not in the URL.
    pub(super) fn password_source(&self) -> Option<&PasswordSource> {
        self.password.as_ref()
    }

    /// Whether both are the same server by their text, whatever the database and the user.
    pub(crate) fn same_server(&self, other: &Self) -> bool {
        match (&self.endpoint, &other.endpoint) {
            (Endpoint::Tcp { host: a, port: p, .. }, Endpoint::Tcp { host: b, port: q, .. }) => {
                a == b && p == q
            }
            (a, b) => a == b,
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Address").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port, tls } => {
                let scheme = if *tls { "rediss" } else { "redis" };
                let (open, close) = if host.contains(':') { ("[", "]") } else { ("", "") };
                write!(f, "{scheme}://{open}{host}{close}:{port}")
            }
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
        }
    }
}

/// The file that a URL names for its password.
fn password_file(url: &str) -> Option<PathBuf> {
    let url = redis::parse_redis_url(url)?;
    let (_, path) = url.query_pairs().find(|(key, _)| key == "password_file")?;
    Some(PathBuf::from(&*path))
}

/// What is wrong with a URL that has a part which nothing reads. A value is never quoted, nor what
/// may be the end of a password that was cut.
fn unused_part(url: &str) -> Option<String> {
    let url = redis::parse_redis_url(url)?;
    let is_socket = url.scheme() == "unix";
    let allowed: &[_] = if is_socket { &["db", "user", "pass", "password_file"] } else { &["password_file"] };
    if is_socket && (!url.username().is_empty() || url.password().is_some()) {
        return Some("its user and password have to be ?user=..&pass=..".to_owned());
    }
    if is_socket && url.port().is_some() {
        return Some("a Unix socket has no port".to_owned());
    }
    if url.fragment().is_some() {
        return Some("nothing may follow a #; in a password it is %23".to_owned());
    }
    let keys: Vec<_> = url.query_pairs().map(|(key, _)| key).collect();
    let names = allowed.join(", ");
    let is_name = |key: &str| {
        key.bytes().all(|byte| byte.is_ascii_lowercase() || b"_-".contains(&byte))
            && url.query().is_some_and(|query| query.contains(&format!("{key}=")))
    };
    keys.iter().enumerate().find_map(|(at, key)| match &**key {
        known if !allowed.contains(&known) => Some(if is_name(known) {
            format!("unknown parameter `{known}`: use {names}")
        } else {
            format!("what follows its ? is no parameter: use {names}")
        }),
        twice if keys[..at].contains(key) => Some(format!("it has the parameter `{twice}` twice")),
        _ => None,
    })
}

/// The parser's reason, without its own name for the kind of error. It never quotes the URL.
fn reason(error: &redis::RedisError) -> String {
    let text = error.to_string();
    text.split("- ").next().unwrap_or(&text).trim().to_owned()
}

/// A URL that may not be well-formed, without all that could be a user, a password or a query.
fn redacted(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    let mut shown = host.split(['?', '#']).next().unwrap_or("").to_owned();
    // Without an @, what follows a colon is a port, or perhaps a password, if the URL was cut.
    if let (false, Some((before, after))) = (rest.contains('@'), shown.rsplit_once(':')) {
        let port = after.split('/').next().unwrap_or("");
        let is_port = port.len() <= 5 && port.bytes().all(|digit| digit.is_ascii_digit());
        if !is_port && !after.ends_with(']') {
            shown = format!("{before}:***");
        }
    }
    let plain = scheme.chars().all(|c| c.is_ascii_alphabetic() || c == '+');
    let scheme = if plain { scheme } else { "***" };
    let separator = if scheme.is_empty() { "" } else { "://" };
    let user = if host.len() < rest.len() { "***@" } else { "" };
    let query = if host.contains(['?', '#']) { "?***" } else { "" };
    format!("{scheme}{separator}{user}{shown}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Address, Invalid> {
        Address::parse(url, None)
    }

    fn name(url: &str) -> String {
        parse(url).unwrap().name().to_string()
    }

    #[test]
    fn every_scheme_is_read() {
        assert_eq!(name("redis://h"), "redis://h:6379");
        assert_eq!(name("valkey://H:7/3"), "redis://h:7/3");
        assert_eq!(name("redis://[::1]:7"), "redis://[::1]:7");
        assert_eq!(name("unix:///run/redis.sock?db=2"), "unix:///run/redis.sock?db=2");
        if cfg!(feature = "tls") {
            assert_eq!(name("rediss://h"), "rediss://h:6379");
            assert_eq!(name("valkeys://h"), "rediss://h:6379");
        } else {
            assert!(parse("rediss://h").unwrap_err().to_string().contains("feature `tls`"));
        }
    }

    #[cfg(feature = "redis")]
    #[test]
    fn what_the_redis_crate_connects_to_is_the_address_of_its_url() {
        let of = |url: &str| Address::of(&url.into_connection_info().unwrap(), None);
        for url in
            ["redis://H:7/3", "redis://bob:s%40cret@h", "redis://[::1]:7", "unix:///run/redis.sock?db=2"]
        {
            let of = of(url).unwrap();
            let parsed = parse(url).unwrap();
            assert_eq!((of.name(), of.endpoint()), (parsed.name(), parsed.endpoint()));
            assert_eq!(of.login.username(), parsed.login.username());
            assert_eq!(of.login.password(), parsed.login.password());
        }
        assert!(of("redis://h/-1").unwrap_err().to_string().contains("negative"));
        let tls = |insecure| {
            let addr = ConnectionAddr::TcpTls { host: "h".into(), port: 1, insecure, tls_params: None };
            Address::of(&addr.into_connection_info().unwrap(), None)
        };
        assert!(tls(true).unwrap_err().to_string().contains("always checked"));
        assert_eq!(tls(false).is_ok(), cfg!(feature = "tls"));
    }

    #[test]
    fn user_password_and_database_are_read_and_never_shown() {
        let address = parse("redis://bob:s%40cret@h:7/3").unwrap();
        assert_eq!(address.login.username(), Some("bob"));
        assert_eq!(address.login.password(), Some("s@cret"));
        assert_eq!(address.login.db(), 3);
        let shown = format!("{address:?} {}", address.name());
        assert!(!shown.contains("bob") && !shown.contains("cret"), "{shown}");
        let address = parse("unix:///s?user=bob&pass=secret&db=4").unwrap();
        assert_eq!((address.login.password(), address.login.db()), (Some("secret"), 4));
    }

    #[test]
    fn a_password_file_is_read_from_the_url() {
        let file = |url: &str| parse(url).unwrap().password_source().map(ToString::to_string);
        assert_eq!(file("redis://bob@h:7/3?password_file=/run/a%20b"), Some("/run/a b".to_owned()));
        assert_eq!(file("unix:///s?user=bob&password_file=secret"), Some("secret".to_owned()));
        assert_eq!(file("redis://:secret@h"), None);
        assert_eq!(name("redis://bob@h?password_file=/x"), "redis://h:6379");
        let error = parse("redis://bob:secret@h?password_file=/x").unwrap_err().to_string();
        assert!(error.contains("give one of them") && !error.contains("secret@"), "{error}");
    }

    #[test]
    fn a_user_without_a_password_logs_in_as_that_user() {
        for url in ["redis://bob@h", "redis://bob:@h", "unix:///s?user=bob"] {
            let login = parse(url).unwrap().login;
            assert_eq!((login.username(), login.password()), (Some("bob"), Some("")), "{url}");
        }
        let login = parse("redis://h").unwrap().login;
        assert_eq!((login.username(), login.password()), (None, None));
    }

    #[test]
    fn every_part_of_a_url_is_used_or_named_and_refused() {
        for (url, named) in [
            ("redis://bob@h?pasword_file=/x", "`pasword_file`"),
            ("redis://h?db=3", "`db`: use password_file"),
            ("redis://h?user=bob", "`user`"),
            ("redis://h?protocol=3", "`protocol`"),
            ("redis://bob@h?password_file=/x&password_file=/y", "`password_file` twice"),
            ("redis://bob:123?secret@h", "its ?"),
            ("redis://bob:123?secret", "its ?"),
            ("redis://h#secret", "%23"),
            ("unix:///s?username=bob", "`username`: use db, user, pass, password_file"),
            ("unix:///s?db=1&db=2", "`db` twice"),
            ("unix://bob:secret@localhost/s", "?user=..&pass=.."),
            ("unix://localhost:7/s", "port"),
        ] {
            let error = parse(url).map(|its| its.name).unwrap_err().to_string();
            assert!(error.contains(named) && !error.contains("secret"), "{url}: {error}");
        }
    }

    #[test]
    fn an_unparsable_url_is_named_without_its_password() {
        for url in [
            "",
            "h:6379",
            "http://bob:secret@h",
            "redis://bob:secret@",
            "redis://bob:secret@h:port",
            "redis://bob:sec/ret@h:99999",
            "redis://bob:secret@h/db",
            "redis://bob:sec@ret@h:x",
            "redis:bob:secret@h",
            "bob:secret@h://x",
            "unix://bob:secret@h?pass=secret",
            "redis://h/?password=secret&protocol=9",
            "redis://bob:secret@0.0.0.0",
            "redis://bob:secret@h/-1",
            "redis://bob:sec/ret@",
        ] {
            let error = parse(url).unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(
                !shown.contains("secret") && !shown.contains("sec/") && !shown.contains("ret@"),
                "{shown}"
            );
            assert!(!shown.contains("bob"), "{shown}");
        }
    }

    /// A comma in a password, say, where URLs are separated by commas.
    #[test]
    fn a_url_that_was_cut_is_named_without_what_may_be_a_password() {
        for (url, named) in [
            ("redis://bob:secret", "\"redis://bob:***\""),
            ("redis://bob:secret/0", "\"redis://bob:***\""),
            ("redis://:secret", "\"redis://:***\""),
            ("cret@h:7", "\"***@h:7\""),
            ("redis://[::1]:x", "\"redis://[::1]:***\""),
        ] {
            let error = parse(url).unwrap_err().to_string();
            assert!(error.contains(named) && !error.contains("cret"), "{error}");
        }
    }

    #[test]
    fn one_server_is_recognised_whatever_database_or_user() {
        let same = |a: &str, b: &str| parse(a).unwrap().same_server(&parse(b).unwrap());
        assert!(same("redis://h", "redis://u:p@H:6379/5"));
        assert!(!same("redis://h", "redis://h:6380"));
        assert!(same("unix:///a?db=1", "unix:///a?db=2"));
    }
}
