//! What a lock costs: how long an acquire and a release take, how many there are in a second, and
//! the CPU of the client and the masters. The contenders of a case take turns on masters that no
//! other case uses.

use std::time::Duration;

use quorate_testkit::Masters;

use crate::Scale;
use crate::contender::{self, Client, Contender, Floor, KINDS, Length, Load, Quorate, REUSED, Rslock};
use crate::figures::Row;
use crate::measure::{Block, asked_and_granted, median, with_quantiles};
use crate::meter;

pub(crate) const MASTERS: usize = 5;

/// How often each contender has its turn in a case.
const BLOCKS: usize = 5;
const BLOCK: Duration = Duration::from_millis(300);
const SHORT_BLOCK: Duration = Duration::from_millis(40);

const RIVALS: [&str; 8] = [
    Quorate::NAME,
    Quorate::REUSED,
    Quorate::ONE_THREAD,
    Rslock::NAME,
    Rslock::REUSED,
    Rslock::ONE_THREAD,
    Floor::NAME,
    Floor::SAME_SCRIPT,
];

/// With one to nine masters, one lock after the other.
pub(crate) fn uncontended(scale: Scale) -> Vec<Row> {
    const CONTENDERS: [&str; 4] = [Quorate::NAME, Rslock::NAME, Floor::NAME, Floor::SAME_SCRIPT];
    [1, 3, 5, 9].into_iter().flat_map(|masters| case(masters, masters, 1, &CONTENDERS, scale)).collect()
}

/// With 1 to 1,024 workers, five masters.
pub(crate) fn cost(scale: Scale) -> Vec<Row> {
    let workers = [1, 16, 64, 256, scale.of(1024, 1000)];
    workers.into_iter().flat_map(|workers| case(workers, MASTERS, workers, &RIVALS, scale)).collect()
}

/// Each kind of lock, with new names, and with the same name again and again.
pub(crate) fn kinds(scale: Scale) -> Vec<Row> {
    let reused = KINDS.map(|(name, _)| format!("{name}{REUSED}"));
    let others = KINDS.iter().zip(&reused).flat_map(|((name, _), reused)| [*name, reused]);
    let names: Vec<&str> = [Quorate::NAME, Quorate::REUSED].into_iter().chain(others).collect();
    case(1, MASTERS, 1, &names, scale)
}

fn case(name: usize, masters: usize, workers: usize, contenders: &[&str], scale: Scale) -> Vec<Row> {
    let (blocks, time) = scale.of((BLOCKS, BLOCK), (1, SHORT_BLOCK));
    let load = Load { workers, length: Length::Time(time) };
    let masters = Masters::start(masters);
    let mut all = contender::all(contenders, &masters.urls());
    let mut measured: Vec<Vec<Block>> = all.iter().map(|_| Vec::new()).collect();
    // Nothing of the first turn is counted.
    for turn in 0..=blocks {
        for (i, contender) in all.iter_mut().enumerate() {
            let block = measure(&mut **contender, contenders[i], &masters, load);
            if turn > 0 {
                measured[i].push(block);
            }
        }
    }
    contenders.iter().zip(&measured).map(|(contender, blocks)| row(name, contender, blocks)).collect()
}

pub(crate) fn row(case: usize, contender: &str, blocks: &[Block]) -> Row {
    let (asked, granted) = asked_and_granted(blocks);
    let a_cycle = |of: fn(&Block) -> f64| median(blocks, |block| of(block) / block.cycles());
    with_quantiles(Row::new(case, contender, asked, granted), blocks)
        .with("cycles_per_s", median(blocks, |block| block.cycles() / block.took.as_secs_f64()))
        .with("client_cpu_us", a_cycle(|block| block.cpu.as_secs_f64() * 1e6))
        .with("masters_cpu_us", a_cycle(|block| block.masters.cpu * 1e6))
        .with("in_commands_us", a_cycle(|block| block.masters.call_us))
}

/// With a new name for each cycle, for longer than masters remember a name: in the last part old
/// names are deleted as fast as new ones come, in the first part none is deleted yet.
pub(crate) fn sustained(scale: Scale) -> Vec<Row> {
    const PART: Duration = Duration::from_secs(20);
    let (parts, part) = scale.of((9, PART), (2, SHORT_BLOCK));
    let load = Load { workers: 64, length: Length::Time(part) };
    let mut rows = Vec::new();
    for (name, parts) in [(Quorate::NAME, parts), (Rslock::NAME, 2)] {
        let masters = Masters::start(MASTERS);
        let mut contender = contender::one(name, &masters.urls());
        contender.work(Load::alone(1)); // it connects
        let empty = meter::used(masters.iter(), &[]).memory;
        for i in 1..=parts {
            let block = measure(&mut *contender, name, &masters, load);
            let memory = (meter::used(masters.iter(), &[]).memory - empty) / MASTERS as f64;
            let keys = masters.iter().map(|master| master.command::<f64>(&["DBSIZE"])).sum::<f64>();
            if i == 1 || i == parts {
                let case = if i == 1 { "first" } else { "last" };
                let row = row(i, name, &[block]).with("memory_mb", memory / 1e6);
                rows.push(Row { case: case.to_owned(), ..row.with("names", keys / MASTERS as f64) });
            }
        }
    }
    rows
}

/// Carries out a load, and notes what it took.
pub(crate) fn measure(contender: &mut dyn Contender, name: &str, masters: &Masters, load: Load) -> Block {
    contender.settle();
    let sent = meter::sent_by(name);
    let before = meter::used(masters.iter(), sent);
    let (began, cpu) = (std::time::Instant::now(), meter::own_cpu());
    let mut block = contender.work(load);
    (block.took, block.cpu) = (began.elapsed(), meter::own_cpu() - cpu);
    block.masters = meter::used(masters.iter(), sent) - before;
    block
}
