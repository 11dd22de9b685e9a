//! What a lock costs: how long an acquire and a release take, how many there are in a second, and
//! the CPU of the client and the masters. The contenders of a case take turns on masters that no
//! other case uses.

use std::time::Duration;

use quorate_testkit::Masters;

use crate::Scale;
use crate::contender::{self, Bare, Client, Contender, Floor, KINDS, Length, Load, Quorate, Rslock};
use crate::figures::Row;
use crate::measure::{Block, asked_and_granted, median};
use crate::meter;

/// How often each contender has its turn in a case.
const BLOCKS: usize = 7;
const FEW_BLOCKS: usize = 1;

const BLOCK: Duration = Duration::from_millis(300);
const SHORT_BLOCK: Duration = Duration::from_millis(40);

/// All contenders of one case.
struct Case<'a> {
    name: String,
    masters: usize,
    workers: usize,
    contenders: &'a [&'a str],
}

const RIVALS: [&str; 6] =
    [Quorate::NAME, Quorate::LENT, Rslock::NAME, Floor::NAME, Floor::SAME_SCRIPT, Bare::NAME];

/// With one to nine masters, one lock after the other.
pub(crate) fn uncontended(scale: Scale) -> Vec<Row> {
    let case = |masters: usize| Case { name: masters.to_string(), masters, workers: 1, contenders: &RIVALS };
    [1, 3, 5, 7, 9].into_iter().flat_map(|masters| case(masters).measure(scale)).collect()
}

/// With 1 to 1,024 workers, each of which has locks of its own; five masters.
pub(crate) fn cost(scale: Scale) -> Vec<Row> {
    with_workers(&[1, 16, 64, 256, scale.of(1024, 1000)], &RIVALS, scale)
}

/// Each kind of lock.
pub(crate) fn kinds(scale: Scale) -> Vec<Row> {
    let names: Vec<&str> = [Quorate::NAME].into_iter().chain(KINDS.map(|(name, _)| name)).collect();
    with_workers(&[1], &names, scale)
}

fn with_workers(workers: &[usize], contenders: &[&str], scale: Scale) -> Vec<Row> {
    let case =
        |workers: &usize| Case { name: workers.to_string(), masters: 5, workers: *workers, contenders };
    workers.iter().flat_map(|workers| case(workers).measure(scale)).collect()
}

impl Case<'_> {
    fn measure(&self, scale: Scale) -> Vec<Row> {
        let (blocks, time) = scale.of((BLOCKS, BLOCK), (FEW_BLOCKS, SHORT_BLOCK));
        let load = Load { workers: self.workers, length: Length::Time(time) };
        let masters = Masters::start(self.masters);
        let mut contenders = contender::all(self.contenders, &masters.urls());
        let mut measured: Vec<Vec<Block>> = contenders.iter().map(|_| Vec::new()).collect();
        // Nothing of the first turn is counted.
        for turn in 0..=blocks {
            for (i, contender) in contenders.iter_mut().enumerate() {
                let block = measure(&mut **contender, self.contenders[i], &masters, load);
                if turn > 0 {
                    measured[i].push(block);
                }
            }
        }
        self.contenders.iter().zip(&measured).map(|(name, blocks)| self.row(name, blocks)).collect()
    }

    fn row(&self, contender: &str, blocks: &[Block]) -> Row {
        let (asked, granted) = asked_and_granted(blocks);
        let p = |of: fn(&Block, f64) -> f64, quantile| median(blocks, |block| of(block, quantile));
        // A cycle is two operations on each master.
        let operation = |block: &Block| block.masters.call_us / (2.0 * block.cycles() * self.masters as f64);
        let (acquire, operation) = (p(Block::acquire, 0.5), median(blocks, operation));
        let row = Row::new(&self.name, contender, asked, granted)
            .with("acquire_p50_us", acquire)
            .with("acquire_p99_us", p(Block::acquire, 0.99))
            .with("release_p50_us", p(Block::release, 0.5))
            .with("cycles_per_s", median(blocks, |block| block.cycles() / block.took.as_secs_f64()))
            .with("client_cpu_us", median(blocks, |block| block.cpu.as_secs_f64() * 1e6 / block.cycles()))
            .with("masters_cpu_us", median(blocks, |block| block.masters.cpu * 1e6 / block.cycles()))
            .with("operation_on_a_master_us", operation);
        if self.workers == 1 { row.with("percent_on_a_master", operation / acquire * 100.0) } else { row }
    }
}

/// Carries out a load, and notes what it took.
fn measure(contender: &mut dyn Contender, name: &str, masters: &Masters, load: Load) -> Block {
    let sent = meter::sent_by(name);
    let before = meter::used(masters.iter(), sent);
    let (began, cpu) = (std::time::Instant::now(), meter::own_cpu());
    let mut block = contender.work(load);
    (block.took, block.cpu) = (began.elapsed(), meter::own_cpu() - cpu);
    block.masters = meter::used(masters.iter(), sent) - before;
    block
}
