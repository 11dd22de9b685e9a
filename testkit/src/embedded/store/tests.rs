//! What time does to keys. What commands say is compared with a real server's, in `tests/it`.

use super::*;

const SECOND: u64 = 1_000_000;

fn run(store: &mut Store, now_us: u64, command: &str) -> Resp {
    let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    store.execute(now_us, &words)
}

#[test]
fn a_key_lives_to_the_end_of_its_last_millisecond() {
    let mut store = Store::default();
    run(&mut store, 5_000, "SET k v PX 10");
    assert_eq!(run(&mut store, 15_999, "PTTL k"), Resp::Int(0));
    assert_eq!(run(&mut store, 15_999, "EXISTS k"), Resp::Int(1));
    assert_eq!(run(&mut store, 16_000, "PTTL k"), Resp::Int(-2));
    assert_eq!(run(&mut store, 0, "EXISTS k"), Resp::Int(0), "a look drops it");
}

#[test]
fn a_key_is_gone_for_every_command_once_it_expired() {
    for (command, reply) in [
        ("DEL h", Resp::Int(0)),
        ("HLEN h", Resp::Int(0)),
        ("HSET h g 2", Resp::Int(1)),
        ("HGETALL h", Resp::List(Vec::new())),
        ("PEXPIRE h 5", Resp::Int(0)),
        ("PERSIST h", Resp::Int(0)),
        ("TYPE h", Resp::Status("none".to_owned())),
        ("DBSIZE", Resp::Int(0)),
        ("KEYS *", Resp::List(Vec::new())),
        ("SET h v XX", Resp::Nil),
    ] {
        let mut store = Store::default();
        run(&mut store, SECOND, "HSET h f 1");
        run(&mut store, SECOND, "PEXPIRE h 1000");
        assert_eq!(run(&mut store, 2 * SECOND + 1000, command), reply, "{command}");
    }
}

#[test]
fn a_life_of_zero_or_less_is_a_deletion() {
    for life in ["0", "-1", "-9223372036854775808"] {
        let mut store = Store::default();
        run(&mut store, SECOND, "SET k v");
        assert_eq!(run(&mut store, SECOND, &format!("PEXPIRE k {life}")), Resp::Int(1));
        assert_eq!(run(&mut store, SECOND, "DBSIZE"), Resp::Int(0));
    }
}

#[test]
fn nothing_expires_while_a_script_runs_but_time_goes_on() {
    let mut store = Store::default();
    run(&mut store, SECOND, "SET k v PX 1000");
    store.freeze(2 * SECOND);
    assert_eq!(run(&mut store, 9 * SECOND, "EXISTS k"), Resp::Int(1));
    assert_eq!(run(&mut store, 9 * SECOND, "PTTL k"), Resp::Int(0));
    let time = [b"9", b"0"].map(|part| Resp::Bulk(part.to_vec()));
    assert_eq!(run(&mut store, 9 * SECOND, "TIME"), Resp::List(time.into()));
    store.thaw();
    assert_eq!(run(&mut store, 9 * SECOND, "EXISTS k"), Resp::Int(0));
}

#[test]
fn what_nobody_hears_is_not_kept() {
    let mut store = Store::default();
    assert_eq!(run(&mut store, 0, "PUBLISH c m"), Resp::Int(0));
    assert!(store.published.is_empty());
    store.listeners.insert(b"c".to_vec(), 2);
    assert_eq!(run(&mut store, 0, "PUBLISH c m"), Resp::Int(2));
    assert_eq!(store.published, [(b"c".to_vec(), b"m".to_vec())]);
}
