//! A password that is read for each login, so that it can change while the client runs.

use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Where a password is read.
#[derive(Clone)]
pub(crate) enum PasswordSource {
    /// The text of a file, without the end of its line.
    File(PathBuf),
    /// What the user's code says for a master, by its name.
    Callback(PasswordCallback),
}

/// See [`Builder::password_from`](crate::Builder::password_from).
#[derive(Clone)]
pub(crate) struct PasswordCallback(Arc<Callback>);

type Callback = dyn Fn(&str) -> io::Result<String> + Send + Sync;

impl PasswordCallback {
    pub(crate) fn new(callback: impl Fn(&str) -> io::Result<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(callback))
    }
}

impl fmt::Debug for PasswordCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordCallback")
    }
}

impl PasswordSource {
    /// Reads the password of `master`, on a thread that may wait.
    pub(super) async fn read(&self, master: &Arc<str>) -> Result<String, String> {
        let source = self.clone();
        let name = master.clone();
        let read = tokio::task::spawn_blocking(move || source.read_now(&name)).await;
        let read = read.unwrap_or_else(|_| Err(io::Error::other("it panicked")));
        read.map_err(|why| format!("cannot read its password from {self}: {why}"))
    }

    fn read_now(&self, master: &str) -> io::Result<String> {
        let password = match self {
            Self::File(path) => fs::read_to_string(path)?.trim_end_matches(['\r', '\n']).to_owned(),
            Self::Callback(callback) => (callback.0)(master)?,
        };
        if password.is_empty() { Err(io::Error::other("it is empty")) } else { Ok(password) }
    }
}

impl fmt::Display for PasswordSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Callback(_) => f.write_str("password_from"),
        }
    }
}
