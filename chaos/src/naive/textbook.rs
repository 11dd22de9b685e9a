//! Redlock as Redis's documentation has it: SET NX PX with the owner on all masters at once, which
//! holds where a majority granted it and it is still valid, a hundredth of the TTL and 2 ms for
//! drift taken off; otherwise, and to give it back, DEL where it is still the owner's. It takes the
//! word of a master that has forgotten what it granted.

use std::time::Duration;

use futures::future::join_all;
use redis::{ErrorKind, RedisError, RedisResult};
use tokio::time::timeout;

use super::connection::MasterConnection;
use super::one_master;
use crate::history::{Time, now};

/// How long one master may take: far less than a lease lasts.
const TIMEOUT: Duration = Duration::from_millis(250);

/// For how long a lease is valid, from the moment at which it was asked for.
pub(super) fn validity(ttl: Duration) -> Duration {
    ttl.saturating_sub(ttl / 100 + Duration::from_millis(2))
}

pub(super) async fn acquire(
    masters: &[MasterConnection],
    key: &str,
    owner: &str,
    ttl: Duration,
    deadline: Time,
) -> RedisResult<bool> {
    let asked = masters.iter().map(|master| {
        let asked = async {
            let mut connection = master.connection().await?;
            one_master::acquire(&mut connection, key, owner, ttl).await
        };
        in_time(master, asked)
    });
    let (granted, failed) = counted(join_all(asked).await, |granted| granted);
    if granted >= majority(masters) && now() < deadline {
        return Ok(true);
    }
    let _ = release(masters, key, owner).await; // what is left of it ends with its TTL
    failed.filter(|_| granted < majority(masters)).map_or(Ok(false), Err)
}

/// Fails where no majority of the masters answered.
pub(super) async fn release(masters: &[MasterConnection], key: &str, owner: &str) -> RedisResult<()> {
    let asked = masters.iter().map(|master| {
        let asked = async {
            let mut connection = master.connection().await?;
            one_master::release(&mut connection, key, owner).await
        };
        in_time(master, asked)
    });
    let (answered, failed) = counted(join_all(asked).await, |()| true);
    failed.filter(|_| answered < majority(masters)).map_or(Ok(()), Err)
}

fn majority(masters: &[MasterConnection]) -> usize {
    masters.len() / 2 + 1
}

/// How many answers are such, and one of the errors.
fn counted<T>(answers: Vec<RedisResult<T>>, is_such: impl Fn(T) -> bool) -> (usize, Option<RedisError>) {
    let mut count = 0;
    let mut failed = None;
    for answer in answers {
        match answer {
            Ok(answer) => count += usize::from(is_such(answer)),
            Err(error) => failed = Some(error),
        }
    }
    (count, failed)
}

async fn in_time<T>(
    master: &MasterConnection,
    asked: impl Future<Output = RedisResult<T>>,
) -> RedisResult<T> {
    let late = |_| Err(RedisError::from((ErrorKind::Io, "no answer in time")));
    master.after(timeout(TIMEOUT, asked).await.unwrap_or_else(late)).await
}
