//! Chaos for real: redis-servers and client processes, the faults to put them through, and what
//! must hold all the same.
//!
//! - [`Arena`] is masters behind fault proxies, and client processes. A [`Master`] is a process, or
//!   a container of a compose file.
//! - [`nemesis`] is the faults: each is a value that [strikes](nemesis::Fault::strike) an arena and
//!   is healed again.
//! - [`scenario`] is what may go wrong in a run, and [`Plan`] which faults there are, and when: one
//!   seed decides.
//! - [`workload`] is what a client process does with locks of all kinds, and writes down.
//! - [`naive`] is locks that are known to be wrong: the same finds what is wrong with them.
//! - [`history`] is what clients did and what they got, as JSON lines that other checkers can read
//!   as well.
//! - [`run`] is all of it together: a stage is set, a plan carried out, and the history read.
//! - [`checkers`] is what must hold for every history, a property a file; and [`figures`] how
//!   available locks were meanwhile. They are the simulator's as well.
//!
//! It takes what the test kit takes: `redis-server`, a C compiler, and Linux.
//!
//! # With masters and a program of your own
//!
//! The pieces stand by themselves: a proxy before each master, the history that the program writes,
//! and the checkers.
//!
//! ```
//! use std::time::Duration;
//!
//! use quorate_chaos::history::{Call, Lock, Outcome, Recorder, Share, read_file};
//! use quorate_chaos::{checkers, figures};
//! use quorate_testkit::{Proxy, Toxic, Way};
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! # let masters = quorate_testkit::Masters::start(1);
//! # let server = masters[0].address();
//! # let folder = tempfile::TempDir::new()?;
//! # let file = folder.path().join("history");
//! let proxy = Proxy::start(server).await; // to any server; nobody else's connections go through it
//! let redlock = quorate::Redlock::builder().master(proxy.url()).all_new().build()?;
//! let recorder = Recorder::open(&file, "my program")?;
//!
//! let lock = Lock { kind: "mutex".to_owned(), names: vec!["mine".to_owned()], share: Share::Exclusive };
//! for turn in 0..3 {
//!     let toxic = Toxic::Latency { delay: Duration::from_millis(turn * 10), jitter: Duration::ZERO };
//!     let slow = proxy.add(Way::Both, toxic);
//!     let ttl = Duration::from_secs(10);
//!     let wait = Duration::from_secs(5);
//!     let number = recorder.invoke(Call::Acquire { lock: lock.clone(), ttl, wait })?;
//!     let guard = redlock.mutex("mine").wait(wait).acquire().await?;
//!     recorder.returned(number, Outcome::Granted {
//!         owner: guard.owner().to_string(),
//!         deadline: guard.deadline().since(quorate::Moment::default()),
//!         fence: Some(guard.fencing_token().get()),
//!         permit: None,
//!     })?;
//!     let hold = number;
//!     let number = recorder.invoke(Call::Release { hold })?;
//!     guard.release().await?;
//!     recorder.returned(number, Outcome::Released)?;
//!     proxy.remove(slow);
//! }
//!
//! let history = read_file(&file)?;
//! assert_eq!(checkers::check_only(&history, &checkers::SAFETY), []);
//! assert_eq!(figures::latencies(&history).len(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arena;
mod client_setup;
pub mod history;
mod master;
pub mod naive;
pub mod nemesis;
mod persistence;
mod plan;
pub mod run;
pub mod scenario;
pub mod workload;

pub use arena::{Arena, Client};
pub use client_setup::ClientSetup;
pub use master::{Host, Master};
pub use persistence::Persistence;
pub use plan::{Plan, PlanEvent, Planned};
pub use quorate_history::{checkers, figures};
