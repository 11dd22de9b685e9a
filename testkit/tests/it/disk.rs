//! Disks that a test makes slow, of real servers.

use std::time::{Duration, Instant};

use quorate_testkit::{RedisServer, eventually_blocking};

const SLOW: Duration = Duration::from_millis(200);

/// A bound for what should happen at once, on a machine that is busy with other tests.
const SOON: Duration = Duration::from_secs(20);

/// How long a write and its answer take.
fn write(server: &RedisServer) -> Duration {
    let begun = Instant::now();
    let _: () = server.command(&["INCR", "k"]);
    begun.elapsed()
}

fn quickest(server: &RedisServer) -> Duration {
    (0..10).map(|_| write(server)).min().unwrap()
}

#[test]
fn a_write_waits_for_a_slow_disk_where_it_is_to_be_on_it() {
    let mut server = RedisServer::start_with_clock(&["--appendonly", "yes", "--appendfsync", "always"]);
    assert!(quickest(&server) < SLOW);
    server.slow_disk(SLOW);
    assert!(write(&server) >= SLOW);
    server.restart();
    assert!(write(&server) >= SLOW);
    server.slow_disk(Duration::ZERO);
    assert!(quickest(&server) < SLOW);
}

/// How many bytes it has answered for and not written, for it waits for its disk.
fn unwritten(server: &RedisServer) -> u64 {
    let info: String = server.command(&["INFO", "persistence"]);
    let length = info.lines().find_map(|line| line.strip_prefix("aof_buffer_length:"));
    length.expect("INFO says what is not written").parse().unwrap()
}

/// It has answered, and is killed while it waits for its disk: what it had not written is lost. A
/// server writes without the disk's word once it has waited for two seconds, so it is killed as
/// soon as it waits.
#[test]
fn a_server_that_persists_every_second_forgets_what_it_answered_while_its_disk_is_slow() {
    let mut server = RedisServer::start_with_clock(&["--appendonly", "yes", "--appendfsync", "everysec"]);
    server.slow_disk(Duration::from_secs(60));
    let written = eventually_blocking(SOON, || {
        let written: u32 = server.command(&["INCR", "k"]);
        if unwritten(&server) > 0 { Ok(written) } else { Err("every write is on the disk") }
    });
    server.kill();
    server.slow_disk(Duration::ZERO);
    server.restart();
    let kept: u32 = server.command::<Option<u32>>(&["GET", "k"]).unwrap_or(0);
    assert!(kept < written, "{kept} of {written}");
}
