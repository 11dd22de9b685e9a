//! What the locks protect: a store that looks at the token of each write, by the library's own
//! script. A write may be under way for long, as those of a client that stood still are.

use std::sync::Arc;
use std::time::Duration;

use quorate::fence;
use quorate::seam::Script;
use quorate_history::Call;
use quorate_testkit::{Dice, EmbeddedServer, Resp};

use crate::client::ClientNumber;
use crate::world::World;

static SET: Script = Script::new("fenced set", fence::SET);

/// The store.
#[derive(Debug)]
pub(crate) struct Resource {
    world: Arc<World>,
    store: EmbeddedServer,
    dice: Dice,
}

impl Resource {
    pub(crate) fn new(world: &Arc<World>) -> Self {
        let its = world.clone();
        let clock = Arc::new(move || u64::try_from(its.now().as_micros()).unwrap_or(u64::MAX));
        Self {
            world: world.clone(),
            store: EmbeddedServer::with_clock(99, clock),
            dice: world.dice("writes", 0),
        }
    }

    /// A new holder writes at once, and once more with a write that takes up to a few TTLs to
    /// arrive.
    pub(crate) fn is_written_to(&self, client: ClientNumber, lock: &str, fence: u64, ttl: Duration) {
        for most in [Duration::from_millis(5), ttl * 4] {
            let store = self.store.clone();
            let world = self.world.clone();
            let lock = lock.to_owned();
            self.world.after(self.dice.time(Duration::ZERO, most), move || {
                let args = fence::set_args(fence, "x", None);
                let args = args.map(|arg| String::from_utf8(arg).expect("it is text"));
                let reply = store.eval(&SET, &[&lock], &args.each_ref().map(String::as_str));
                let accepted = match reply {
                    Resp::Int(seen) => fence::check(fence, seen.unsigned_abs()).is_ok(),
                    other => panic!("{other:?}"),
                };
                let write = Call::Write { resource: lock, fence };
                world.recorder.write(client, world.now(), write, accepted);
            });
        }
    }
}
