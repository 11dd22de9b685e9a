//! No schedule and no fault lets readers and a writer in together, or two writers.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use quorate::{Guard, Redlock};
use quorate_testkit::Masters;

use crate::fencing::while_harmed;
use crate::semaphore_crowd::{most, take_turns};
use crate::{builder, ms};

/// From when to when somebody has the lock for certain, whether to write, and by which token.
#[derive(Clone, Copy, Debug)]
struct Window {
    from: Instant,
    to: Instant,
    writes: bool,
    fence: u64,
}

/// What a read-write lock never does: a writer beside anybody else, or a token out of order with a
/// writer's.
fn faults(windows: &[Window]) -> Vec<(Window, Window)> {
    let mut windows: Vec<Window> = windows.iter().filter(|window| window.from < window.to).copied().collect();
    windows.sort_by_key(|window| window.from);
    let mut faults = Vec::new();
    for (place, one) in windows.iter().enumerate() {
        for next in &windows[place + 1..] {
            let meet = next.from < one.to;
            let conflict = one.writes || next.writes;
            if conflict && (meet || next.fence <= one.fence) {
                faults.push((*one, *next));
            }
            if next.from > one.to + Duration::from_secs(5) {
                break; // tokens of those that are further apart have others in between
            }
        }
    }
    faults
}

#[test]
fn a_writer_beside_others_and_a_token_out_of_order_are_seen() {
    let begun = Instant::now();
    let window = |from: u64, to: u64, writes: bool, fence: u64| Window {
        from: begun + ms(from),
        to: begun + ms(to),
        writes,
        fence,
    };
    let (read, write) = (false, true);
    assert!(faults(&[window(0, 10, read, 2), window(5, 15, read, 1), window(15, 20, write, 3)]).is_empty());
    assert_eq!(faults(&[window(0, 10, read, 1), window(9, 15, write, 2)]).len(), 1);
    assert_eq!(faults(&[window(0, 10, write, 1), window(9, 15, read, 2)]).len(), 1);
    assert_eq!(faults(&[window(0, 10, write, 1), window(9, 15, write, 2)]).len(), 1);
    assert_eq!(faults(&[window(0, 10, write, 2), window(10, 15, read, 1)]).len(), 1);
    assert_eq!(faults(&[window(0, 10, read, 2), window(10, 15, write, 2)]).len(), 1);
    assert!(faults(&[window(0, 10, write, 1), window(10, 10, write, 1)]).is_empty(), "nobody had it");
}

/// The most that read at the same time.
fn most_readers(windows: &[Window]) -> i64 {
    let readers = windows.iter().filter(|window| !window.writes).map(|window| (window.from, window.to));
    most(&readers.collect::<Vec<_>>())
}

const CLIENTS: usize = 4;
const TASKS: usize = 24;

/// Many tasks come again and again, every fourth time to write.
async fn crowd(clients: &[Redlock], turns: u32, windows: &Mutex<Vec<Window>>) {
    let writes = |turn| turn % 4 == 0;
    let lock = |client: &Redlock, turn| match writes(turn) {
        true => client.write_lock("l"),
        false => client.read_lock("l"),
    };
    let note = |turn, guard: &Guard, (from, to)| {
        let window = Window { from, to, writes: writes(turn), fence: guard.fencing_token().get() };
        windows.lock().unwrap().push(window);
    };
    take_turns(clients, (TASKS, turns), lock, note).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_reads_together_and_writes_alone() {
    let masters = Masters::start(5);
    let clients: Vec<_> = (0..CLIENTS).map(|_| builder(&masters).build().unwrap()).collect();
    let (windows, begun) = (Mutex::default(), Instant::now());
    crowd(&clients, 1_000, &windows).await;
    let windows = windows.into_inner().unwrap();
    println!("{} turns in {:.1?}, {} read together", windows.len(), begun.elapsed(), most_readers(&windows));
    assert_eq!(windows.iter().filter(|window| window.writes).count(), 250);
    assert_eq!(faults(&windows).len(), 0, "{:?}", faults(&windows));
    assert!(most_readers(&windows) > 1, "they take turns");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_writes_beside_others_while_masters_die_and_come_back() {
    let windows = Mutex::default();
    let harmed = while_harmed(CLIENTS, async |clients| crowd(clients, 2_500, &windows).await).await;
    let windows = windows.into_inner().unwrap();
    println!("{} turns, while masters were harmed {harmed} times", windows.len());
    assert!(harmed >= 3, "hardly anything happened");
    assert_eq!(faults(&windows).len(), 0, "{:?}", faults(&windows));
}
