//! Locks as tutorials have them, each with a defect of its own: what a harness has to find.
//!
//! | lock | defect | found by |
//! |---|---|---|
//! | [`SetnxExpire`](Naive::SetnxExpire) | a crash between its two commands leaves it locked for ever, and it gives back what is another's by now, as `Del` | `ttl`, `liveness`, `windows` |
//! | [`Getset`](Naive::Getset) | a client with a fast clock takes it from its holder | `windows` |
//! | [`Del`](Naive::Del) | a late holder deletes the lock of the next one | `windows` |
//! | [`OneMaster`](Naive::OneMaster) | a replica that lags takes over, and knows of no holder | `windows` |
//! | [`ReadWrite`](Naive::ReadWrite) | a reader that leaves, or whose lease ends, lets the writer in beside the others | `readers` |
//! | [`Textbook`](Naive::Textbook) | a master that forgets what it granted votes again | `windows` |
//!
//! All of them poll. `Textbook` goes by all masters, and the others by the first one.

mod connection;
mod del;
mod getset;
mod one_master;
mod read_write;
mod setnx_expire;
mod textbook;
mod wall_clock;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::RedisResult;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use connection::MasterConnection;
use wall_clock::wall_clock;

use crate::history::{Share, Time, now};

/// How often a waiter asks.
const POLL: Duration = Duration::from_millis(20);

/// A naive lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Naive {
    /// SETNX, and then EXPIRE.
    SetnxExpire,
    /// The value is when the lock is over, by the holder's wall clock; who finds that it is over
    /// takes it by GETSET.
    Getset,
    /// SET NX PX, and DEL to give it back.
    Del,
    /// SET NX PX, and DEL if it is the owner's: as well as one master can do.
    OneMaster,
    /// A hash with one field for all readers, and one for the writer.
    ReadWrite,
    /// Redlock: SET NX PX on all masters, and DEL if it is the owner's. A majority decides.
    Textbook,
}

impl Naive {
    /// What it is called in a history.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::SetnxExpire => "setnx-expire",
            Self::Getset => "getset",
            Self::Del => "del",
            Self::OneMaster => "one-master",
            Self::ReadWrite => "naive-read-write",
            Self::Textbook => "textbook",
        }
    }

    /// What it is, in a sentence.
    pub(crate) fn about(self) -> &'static str {
        match self {
            Self::SetnxExpire => "SETNX, and then EXPIRE, on one master: a lock that is known to be wrong.",
            Self::Getset => "GETSET by the clients' clocks, on one master: a lock that is known to be wrong.",
            Self::Del => {
                "SET NX PX on one master, and DEL to give it back: a lock that is known to be wrong."
            }
            Self::OneMaster => {
                "SET NX PX on one master: a lock that is known to be wrong where a replica takes its place."
            }
            Self::ReadWrite => {
                "A hash with one field for all readers, on one master: a lock that is known to be wrong."
            }
            Self::Textbook => {
                "Redlock as in the textbook, without Quorate's guards: a lock that is known to be wrong."
            }
        }
    }

    /// How long a holder takes it for valid.
    fn validity(self, ttl: Duration) -> Duration {
        if self == Self::Textbook { textbook::validity(ttl) } else { ttl }
    }

    /// Who may hold it at the same time, if it is asked for to read, or not.
    pub(crate) fn share(self, reads: bool) -> Share {
        if self == Self::ReadWrite && reads { Share::Shared } else { Share::Exclusive }
    }
}

/// A process's way to the masters of a naive lock.
#[derive(Debug)]
pub(crate) struct NaiveClient {
    naive: Naive,
    /// The masters that it uses: one, or all for [`Naive::Textbook`].
    masters: Arc<[MasterConnection]>,
    process: String,
    /// How many owners there were.
    owners: AtomicU64,
}

/// A naive lock that is held.
#[derive(Clone, Debug)]
pub(crate) struct NaiveHold {
    pub(crate) owner: String,
    /// When its holder takes it for over: a TTL after it was asked for, or a little earlier.
    pub(crate) deadline: Time,
    naive: Naive,
    masters: Arc<[MasterConnection]>,
    key: String,
    share: Share,
    /// What its holder knows it by at the key.
    value: String,
}

impl NaiveClient {
    pub(crate) fn open(naive: Naive, masters: &[String], process: &str) -> RedisResult<Self> {
        let used = if naive == Naive::Textbook { masters } else { &masters[..1] };
        let masters = used.iter().map(|url| MasterConnection::new(url)).collect::<RedisResult<_>>()?;
        Ok(Self { naive, masters, process: process.to_owned(), owners: AtomicU64::new(0) })
    }

    /// Asks until it is granted, or the wait is over.
    pub(crate) async fn acquire(
        &self,
        key: &str,
        share: Share,
        ttl: Duration,
        wait: Duration,
    ) -> RedisResult<Option<NaiveHold>> {
        let owner = format!("{}:{}", self.process, self.owners.fetch_add(1, Ordering::Relaxed));
        let over = now() + wait;
        loop {
            let deadline = now() + self.naive.validity(ttl);
            let value = match self.naive {
                Naive::ReadWrite => wall_clock().to_string(),
                _ => owner.clone(),
            };
            let is_granted = match self.naive {
                Naive::Textbook => textbook::acquire(&self.masters, key, &value, ttl, deadline).await?,
                _ => self.masters[0].after(self.ask_one(key, share, &value, ttl).await).await?,
            };
            if is_granted {
                let naive = self.naive;
                let masters = self.masters.clone();
                let key = key.to_owned();
                return Ok(Some(NaiveHold { owner, deadline, naive, masters, key, share, value }));
            }
            if now() >= over {
                return Ok(None);
            }
            sleep(POLL).await;
        }
    }

    async fn ask_one(&self, key: &str, share: Share, value: &str, ttl: Duration) -> RedisResult<bool> {
        let connection = &mut self.masters[0].connection().await?;
        match self.naive {
            Naive::SetnxExpire => setnx_expire::acquire(connection, key, ttl).await,
            Naive::Getset => getset::acquire(connection, key, ttl).await,
            Naive::Del => del::acquire(connection, key, ttl).await,
            Naive::OneMaster | Naive::Textbook => one_master::acquire(connection, key, value, ttl).await,
            Naive::ReadWrite => read_write::acquire(connection, key, share, value, ttl).await,
        }
    }
}

impl NaiveHold {
    pub(crate) async fn release(&self) -> RedisResult<()> {
        match self.naive {
            Naive::Textbook => textbook::release(&self.masters, &self.key, &self.value).await,
            _ => self.masters[0].after(self.release_one().await).await,
        }
    }

    async fn release_one(&self) -> RedisResult<()> {
        let connection = &mut self.masters[0].connection().await?;
        let key = &self.key;
        let value = &self.value;
        match self.naive {
            Naive::SetnxExpire | Naive::Getset | Naive::Del => del::release(connection, key).await,
            Naive::OneMaster | Naive::Textbook => one_master::release(connection, key, value).await,
            Naive::ReadWrite => read_write::release(connection, key, self.share, value).await,
        }
    }
}
