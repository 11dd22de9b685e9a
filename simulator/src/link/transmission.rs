//! Messages on their way between a client and a master, and what the master does with what arrives.

use std::sync::Arc;
use std::time::Duration;

use quorate::seam::{Call, Failure, Hello, Value};
use quorate_testkit::Resp;

use super::Link;
use super::network::{FromMaster, Greeting, NetworkReply, Request, RequestKind};
use super::words::{describe, tell, tell_reply};

impl Link {
    /// Puts a message on its way.
    pub(super) fn transmit(self: &Arc<Self>, request: Request) {
        let request = Arc::new(request);
        let delay = self.delay();
        let (number, weather) = {
            let mut state = self.state();
            let network = &mut state.network;
            if !network.is_connected {
                return; // it broke, and the process does not know that yet
            }
            network.count += 1;
            network.sent.insert(network.count, request.clone());
            (network.count, network.weather)
        };
        self.process.has_sent();
        if !request.task.calls().is_empty() {
            if self.dice.happens(weather.repeated) {
                self.transmit_again(&request);
            }
            if self.dice.happens(weather.overtaken) {
                let link = self.clone();
                return self.world.after(delay * 3, move || link.arrive(number, true));
            }
        }
        let arrives = self.state().network.there.push(self.world.now() + delay, number);
        let link = self.clone();
        self.world.at(arrives, move || link.pump());
    }

    /// The same message once more, later, and nobody hears of it.
    fn transmit_again(self: &Arc<Self>, request: &Arc<Request>) {
        let link = self.clone();
        let request = request.clone();
        self.world.after(self.delay() + self.dice.millis(1, 100), move || {
            let its = link.clone();
            let _ = link.server.take(move || its.execute_late("a second time", &request));
        });
    }

    /// Hands on what has arrived, in both directions.
    pub(crate) fn pump(self: &Arc<Self>) {
        let now = self.world.now();
        while let Some(number) = {
            let mut state = self.state();
            state.network.there.pop(now)
        } {
            self.arrive(number, false);
        }
        while let Some(message) = {
            let mut state = self.state();
            state.network.back.pop(now)
        } {
            let link = self.clone();
            self.process.deliver(move || match message {
                FromMaster::Reply(number, reply) => link.receive(number, reply),
                FromMaster::Invalidation => link.record_changed(),
            });
        }
        self.hearing.pump(self);
    }

    /// Nothing gets through in these directions, or everything does again.
    pub(crate) fn block(self: &Arc<Self>, there: bool, back: bool) {
        {
            let mut state = self.state();
            (state.network.there.blocked, state.network.back.blocked) = (there, back);
        }
        self.pump();
    }

    pub(crate) fn is_blocked(&self) -> bool {
        let state = self.state();
        state.network.there.blocked || state.network.back.blocked
    }

    /// A message arrives at the master, which may do it much later.
    fn arrive(self: &Arc<Self>, number: u64, late: bool) {
        let (request, connection) = {
            let state = self.state();
            let Some(request) = state.network.sent.get(&number) else { return };
            (request.clone(), state.network.connection)
        };
        let link = self.clone();
        let is_taken = self.server.take(move || {
            let (is_open, is_forgotten) = {
                let network = &link.state().network;
                (network.sent.contains_key(&number), network.known > connection)
            };
            if is_open {
                link.execute(number, &request, late);
            } else if !is_forgotten {
                link.execute_late("late", &request);
            }
        });
        if !is_taken {
            self.break_off(); // nobody listens there
        }
    }

    fn execute(self: &Arc<Self>, number: u64, request: &Request, late: bool) {
        let reply = match &request.task {
            RequestKind::Hello(_, was_new) if *was_new != self.server.redis.is_whole() => {
                return self.break_off(); // what is known of a process is not said to the next one
            }
            RequestKind::Hello(..) if self.server.is_closed_to(self.process.number) => {
                return self.break_off(); // it comes later
            }
            RequestKind::Hello(hello, _) => {
                {
                    let network = &mut self.state().network;
                    network.known = network.connection;
                }
                NetworkReply::Greeting(hello.as_ref().map(|hello| self.greet(hello)))
            }
            RequestKind::Ping => NetworkReply::To(Ok(Value::Nil)),
            RequestKind::Look => NetworkReply::To(Ok(self.look())),
            RequestKind::Calls(script, calls) => {
                let reply = self.server.run(script, calls, &request.header, late);
                self.note(|| format!("executes {} -> {}", described(calls), tell_reply(&reply)));
                NetworkReply::To(reply)
            }
        };
        self.send_back(self.delay(), FromMaster::Reply(number, reply));
    }

    fn look(&self) -> Value {
        match self.server.redis.command(&["INFO", "memory"]) {
            Resp::Bulk(info) => Value::Text(String::from_utf8_lossy(&info).into()),
            other => unreachable!("{other:?}"),
        }
    }

    fn send_back(self: &Arc<Self>, delay: Duration, message: FromMaster) {
        let arrives = self.state().network.back.push(self.world.now() + delay, message);
        let link = self.clone();
        self.world.at(arrives, move || link.pump());
    }

    fn greet(&self, hello: &Hello) -> Greeting {
        let answer = self.server.redis.greet(hello);
        self.note(|| format!("greets -> {}", tell(&answer)));
        answer
    }

    fn execute_late(&self, how: &str, request: &Request) {
        if let RequestKind::Calls(script, calls) = &request.task {
            self.note(|| format!("executes {how}: {}", described(calls)));
            let _ = self.server.run(script, calls, &request.header, true);
        }
    }

    /// The master tells this connection that its record changed, if it was greeted on it.
    pub(crate) fn tell_of_change(self: &Arc<Self>) {
        let delay = self.delay();
        let is_greeted = {
            let network = &self.state().network;
            network.connection() == Some(network.known)
        };
        if is_greeted {
            self.send_back(delay, FromMaster::Invalidation);
        }
    }

    fn record_changed(self: &Arc<Self>) {
        self.with(|link, _| link.pushed(&[Value::Text("invalidate".into())]));
    }

    /// A reply arrives at the client, which gets replies in the order of its messages.
    fn receive(self: &Arc<Self>, number: u64, reply: NetworkReply) {
        {
            let network = &mut self.state().network;
            if network.sent.contains_key(&number) {
                network.received.insert(number, reply);
            }
        }
        while let Some((request, reply)) = {
            let mut state = self.state();
            state.network.next_reply()
        } {
            match (reply, &request.task) {
                (NetworkReply::Greeting(greeting), RequestKind::Hello(hello, was_new)) => {
                    self.greeted(hello.as_ref().zip(greeting), *was_new);
                }
                (NetworkReply::To(reply), task) => self.answered(task, reply),
                (NetworkReply::Greeting(_), _) => unreachable!("only a hello is greeted"),
            }
        }
    }

    /// The connection breaks. What is on its way is lost, or executed late, while the client does
    /// not know of it.
    pub(crate) fn break_off(self: &Arc<Self>) {
        let connection = self.state().network.connection();
        if let Some(connection) = connection {
            self.disconnect();
            let link = self.clone();
            self.process.deliver(move || link.notice_break(connection));
        }
        self.hearing.break_off(self);
    }

    fn notice_break(self: &Arc<Self>, connection: u64) {
        if self.state().network.connection == connection {
            let why = "the connection broke";
            self.with(|link, now| link.broke(why, now));
            self.not_opened(Failure::Unreachable(why.into()));
        }
    }

    /// There is no connection any more.
    pub(super) fn disconnect(self: &Arc<Self>) {
        let (on_the_way, connection) = {
            let network = &mut self.state().network;
            network.is_connected = false;
            network.received.clear();
            network.back.empty().for_each(drop);
            let sent = std::mem::take(&mut network.sent);
            let on_the_way: Vec<_> = network.there.empty().filter_map(|id| sent.get(&id).cloned()).collect();
            (on_the_way, network.connection)
        };
        self.leave_late(on_the_way, connection);
    }

    /// Half of what was on its way is executed all the same, in order, unless the next connection
    /// is there first.
    fn leave_late(self: &Arc<Self>, on_the_way: Vec<Arc<Request>>, connection: u64) {
        let mut delay = self.delay();
        for request in on_the_way {
            if self.dice.happens(500) {
                continue;
            }
            delay += self.dice.millis(0, 20);
            let link = self.clone();
            self.world.after(delay, move || {
                let its = link.clone();
                let _ = link.server.take(move || {
                    if its.state().network.known <= connection {
                        its.execute_late("late", &request);
                    }
                });
            });
        }
    }
}

fn described(calls: &[Arc<Call>]) -> String {
    calls.iter().map(|call| describe(call)).collect::<Vec<_>>().join("; ")
}
