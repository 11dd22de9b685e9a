//! A holder that pauses past its lease, and whose late write the database refuses. It needs
//! nothing: its masters live in the process, and so does SQLite.

use std::time::Duration;

use quorate::Redlock;
use quorate::fence::{self, FencingToken};
use quorate_testkit::EmbeddedMasters;
use rusqlite::{Connection, OptionalExtension};

/// Writes a balance, unless a later holder of the lock has been there.
fn set_balance(
    db: &Connection,
    id: i64,
    balance: i64,
    fence: FencingToken,
) -> Result<(), Box<dyn std::error::Error>> {
    let unless_stale = fence::sql_predicate("fence", "?2");
    let update = format!("UPDATE accounts SET balance = ?1, fence = ?2 WHERE id = ?3 AND {unless_stale}");
    if db.execute(&update, (balance, fence.as_i64(), id))? > 0 {
        return Ok(());
    }
    // Nothing was written. What follows only says why.
    let seen: Option<i64> =
        db.query_row("SELECT fence FROM accounts WHERE id = ?1", [id], |row| row.get(0)).optional()?;
    let seen = seen.ok_or_else(|| format!("there is no account {id}"))?;
    fence::check(fence, seen.try_into()?)?;
    Err(format!("account {id} was replaced meanwhile").into())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let db = Connection::open_in_memory()?;
    db.execute_batch(
        "CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance BIGINT NOT NULL, fence BIGINT);
         INSERT INTO accounts (id, balance) VALUES (42, 100);",
    )?;
    let redlock = Redlock::builder().masters(&EmbeddedMasters::new(3)).build()?;
    let lock = redlock.lock("account:42");

    // A lease that is not renewed, as that of a process that stands still.
    let first = lock.clone().ttl(Duration::from_millis(200)).no_renewal().acquire().await?;
    let first_fence = first.fencing_token();
    let withdrawn = 100 - 10;
    tokio::time::sleep(Duration::from_millis(250)).await; // it pauses here, past its lease

    let second = lock.acquire().await?;
    let second_fence = second.fencing_token();
    set_balance(&db, 42, 70, second_fence)?;
    set_balance(&db, 42, 60, second_fence)?; // a holder may write more than once

    assert!(!first.is_valid());
    let error = set_balance(&db, 42, withdrawn, first_fence).expect_err("it is late");
    println!("the late write: {error}");
    assert_eq!(
        error.downcast_ref(),
        Some(&fence::Stale { given: first_fence.get(), seen: second_fence.get() })
    );
    let balance: i64 = db.query_row("SELECT balance FROM accounts WHERE id = 42", [], |row| row.get(0))?;
    assert_eq!(balance, 60);

    second.release().await?;
    Ok(())
}
