//! Builds a client from settings and the seams: masters, clock, randomness, executor.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::join_all;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;

use crate::admin::doctor::{self, Report, Visit, Visitor};
use crate::blocking;
use crate::client::Redlock;
use crate::config::{DEFAULT_TTL, Settings};
use crate::engine::Engine;
use crate::env;
use crate::error::Error;
use crate::executor::Executor;
use crate::inner::{Host, Inner};
use crate::invalid::Invalid;
use crate::link::{
    Address, Dialler, LinkSettings, Master, MasterMaker, Masters, PasswordCallback, RedisMaster, Roster,
};
use crate::random::{Random, SystemRandom};
use crate::round::quorum;
use crate::set::Terms;
use crate::source::{self, Checked, Source};
use crate::time::{BootClock, Clock, Moment};
use crate::wire::{Kind, LockId, SCRIPTS, WakeChannelPrefix};

/// Collects what a [`Redlock`] needs. Every setting is checked by [`build`](Builder::build), before
/// anything is sent.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// let redlock = quorate::Redlock::builder()
///     .masters(["redis://10.0.0.1", "redis://10.0.0.2", "redis://:password@10.0.0.3:6380/1"])
///     .ttl(Duration::from_secs(30))
///     .build()?; // connects with the first use; a dead master never blocks
/// # Ok::<(), quorate::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing before `build`"]
pub struct Builder {
    sources: Vec<Source>,
    settings: Settings,
    /// Empty without the feature `tls`.
    roots: Vec<Vec<u8>>,
    password_from: Option<PasswordCallback>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    executor: Option<Executor>,
    #[cfg(feature = "unstable-testing")]
    joining: Option<MasterMaker>,
}

impl Redlock {
    /// Begins a client. See [`Builder`].
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// A client from the command's environment variables: see [`env`](crate::env). For more
    /// settings begin with [`Builder::from_env`].
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], which names the variable, and those of [`Builder::build`].
    ///
    /// # Examples
    ///
    /// ```
    /// // QUORATE_MASTERS=redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3
    /// match quorate::Redlock::from_env() {
    ///     Ok(redlock) => println!("{} masters", redlock.master_status().len()),
    ///     Err(error) => assert!(error.to_string().contains("QUORATE_MASTERS")), // it is not set
    /// }
    /// ```
    pub fn from_env() -> Result<Self, Error> {
        Builder::from_env()?.build()
    }
}

impl Builder {
    fn new() -> Self {
        Self {
            sources: Vec::new(),
            settings: Settings::default(),
            roots: Vec::new(),
            password_from: None,
            clock: Arc::new(BootClock),
            random: Arc::new(SystemRandom),
            executor: None,
            #[cfg(feature = "unstable-testing")]
            joining: None,
        }
    }

    /// Begins with the settings of the environment: see [`env`](crate::env).
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], which names the variable: one that cannot be read, or no usable URL in
    /// `QUORATE_MASTERS`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// let client = quorate::Builder::from_env().and_then(|builder| builder.wait(Duration::from_secs(5)).build());
    /// ```
    pub fn from_env() -> Result<Self, Error> {
        let wrong = |why: String| Invalid::environment(env::MASTERS, &why);
        let masters = env::masters();
        if masters.is_empty() {
            return Err(wrong("it names no master: set it to their URLs, separated by commas".into()).into());
        }
        for url in &masters {
            Address::parse(url, None).map_err(|why| wrong(why.to_string()))?;
        }
        let mut builder = Self::new().masters(masters);
        if let Some(prefix) = env::prefix() {
            builder = builder.prefix(prefix);
        }
        if let Some(max_ttl) = env::max_ttl()? {
            builder = builder.max_ttl(max_ttl).ttl(max_ttl.min(DEFAULT_TTL));
        }
        Ok(builder)
    }

    /// Adds one master by its URL: `redis://[user:password@]host[:port][/database]`, the same with
    /// `rediss://` (TLS, with the feature `tls`), `valkey://` or `valkeys://`, or
    /// `unix:///path?db=..&user=..&pass=..`. With `?password_file=PATH` in place of the password it
    /// is the text of that file, without the end of the line; the file is read for every
    /// connection, and once more when a master refuses what was in it. So a password can be
    /// changed while clients run: `docs/OPERATIONS.md` says how. A user without a password logs in
    /// with an empty one, as Redis's `nopass` users can. A URL with any other part is refused.
    ///
    /// A client has 1 to [15](crate::config::MAX_MASTERS) masters, and every client of
    /// the same locks must have the same ones. They must be independent servers: not replicas of
    /// each other, and none listed twice.
    ///
    /// It can also be a `ConnectionInfo` of the redis crate, with the feature `redis`, and for
    /// tests a server within the process, of the test kit.
    pub fn master(mut self, master: impl Into<Source>) -> Self {
        self.sources.push(master.into());
        self
    }

    /// Adds masters; see [`master`](Builder::master).
    pub fn masters<I>(mut self, masters: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<Source>,
    {
        self.sources.extend(masters.into_iter().map(Into::into));
        self
    }

    /// Where the passwords come from that no URL has, nor names a file for: `callback` is called
    /// for every connection, with the master's URL without its user, and once more when a master
    /// refuses what it said. It may wait, on a thread of its own, for up to three seconds: then the
    /// connection is given up, and tried again later. If it fails, so does the connection, with its
    /// error.
    ///
    /// # Examples
    ///
    /// ```
    /// let redlock = quorate::Redlock::builder()
    ///     .masters(["redis://jobs@10.0.0.1", "redis://jobs@10.0.0.2", "redis://jobs@10.0.0.3"])
    ///     .password_from(|_master| std::fs::read_to_string("/run/secrets/redis"))
    ///     .build()?;
    /// # Ok::<(), quorate::Error>(())
    /// ```
    pub fn password_from(
        mut self,
        callback: impl Fn(&str) -> io::Result<String> + Send + Sync + 'static,
    ) -> Self {
        self.password_from = Some(PasswordCallback::new(callback));
        self
    }

    /// The TTL of locks that do not set one, from [10 ms](crate::config::MIN_TTL) to the
    /// [`max_ttl`](Builder::max_ttl). A holder that dies blocks the others for that long. The
    /// default is [10 s](crate::config::DEFAULT_TTL).
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.settings.ttl = ttl;
        self
    }

    /// The longest TTL of any lock, up to [24 hours](crate::config::MAX_TTL); the default is
    /// [30 s](crate::config::DEFAULT_MAX_TTL). A master that may have lost its locks
    /// cannot vote for a little longer than that. It is a term of the set of masters, which
    /// [`init`](Redlock::init) writes: a client with another one is refused.
    pub fn max_ttl(mut self, max_ttl: Duration) -> Self {
        self.settings.max_ttl = max_ttl;
        self
    }

    /// The wait of locks that do not set one, up to [24 hours](crate::config::MAX_WAIT). The
    /// default is [60 s](crate::config::DEFAULT_WAIT); zero means one try.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.settings.wait = wait;
        self
    }

    /// How many acquires of this client may wait for one lock at a time, 1 at least; further ones
    /// fail with [`Error::QueueFull`]. The default is
    /// [10,000](crate::config::DEFAULT_MAX_WAITERS).
    pub fn max_waiters(mut self, limit: usize) -> Self {
        self.settings.max_waiters = limit;
        self
    }

    /// While more operations of the client than this are under way (acquires, releases, renewals,
    /// inspections), a new acquire of a [`lock`](Redlock::lock) or [`mutex`](Redlock::mutex) is
    /// sent to a quorum of the masters. The others are asked if one of those has no vote or falls
    /// silent, or if their answers decide nothing; otherwise they are
    /// [`NotAsked`](crate::Outcome::NotAsked) in its votes. This saves CPU on masters and client.
    ///
    /// Such a lease is on those masters only until it is 50 ms old; then the others get it, too.
    /// Acquires with `owned_by` or `cancelled_by`, and those that wait while the client listens for
    /// wake-ups, always ask all. Two clients never hold a lock at once, whatever this is.
    ///
    /// The default is [32](crate::config::DEFAULT_QUORUM_FIRST_ABOVE). 0 is always; `usize::MAX` is
    /// never.
    pub fn quorum_first_above(mut self, rounds: usize) -> Self {
        self.settings.quorum_first_above = rounds;
        self
    }

    /// How long a master may take to answer before its vote counts as unknown: below the TTL, and
    /// above the round trip to the farthest master needed for a quorum.
    ///
    /// The default is [250 ms](crate::config::DEFAULT_TIMEOUT), or a quarter of the TTL
    /// if that is less.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = Some(timeout);
        self
    }

    /// The prefix of every key, without braces, of at most
    /// [256](crate::config::MAX_PREFIX) bytes; the default is
    /// [`quorate:`](crate::config::DEFAULT_PREFIX). Clients with different prefixes have
    /// different locks.
    pub fn prefix(mut self, prefix: impl AsRef<str>) -> Self {
        self.settings.prefix = prefix.as_ref().into();
        self
    }

    /// A label for this client's holders, which errors, inspections and `quorate status` show
    /// beside the owner. It has at most [64](crate::config::MAX_LABEL) bytes and no
    /// control characters. The default is the host, the process and the program, as in `web1 4711
    /// billing`: see [`label_of_process`](crate::config::label_of_process); an empty one is none.
    /// [`Lock::label`](crate::Lock::label) sets it for one lock.
    pub fn label(mut self, label: impl AsRef<str>) -> Self {
        self.settings.label = label.as_ref().into();
        self
    }

    /// Trusts the certificates in `pem` for `rediss://`, besides Mozilla's roots.
    #[cfg(feature = "tls")]
    pub fn tls_root(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots.push(pem.into());
        self
    }

    /// Measures leases with `clock`; for tests, as with paused time.
    #[cfg(feature = "unstable-testing")]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Takes every master for one that is new, or forgets nothing, so that a set begins by itself.
    /// For tests: what a master forgets, the next client gets.
    #[cfg(feature = "unstable-testing")]
    pub fn all_new(mut self) -> Self {
        self.settings.all_new = true;
        self
    }

    /// Draws identities and jitter from `random`.
    #[cfg(feature = "unstable-testing")]
    pub fn random(mut self, random: Arc<dyn Random>) -> Self {
        self.random = random;
        self
    }

    /// Makes the masters of these names that join the set while the client runs.
    #[cfg(feature = "unstable-testing")]
    pub fn joining(
        mut self,
        maker: impl Fn(&str) -> Result<Arc<dyn Master>, Invalid> + Send + Sync + 'static,
    ) -> Self {
        self.joining = Some(MasterMaker(Arc::new(maker)));
        self
    }

    /// Runs the engine on `runtime` instead of its own thread; for tests. [`build`](Builder::build)
    /// accepts only a current-thread runtime, because on several threads a clean-up could overtake
    /// what it undoes. If the runtime stops, so do the client's clean-ups.
    pub fn runtime(mut self, runtime: Handle) -> Self {
        self.executor = Some(Executor::Runtime(runtime));
        self
    }

    /// Runs the engine's tasks on `executor`, so that a simulation can suspend a client.
    #[cfg(feature = "unstable-testing")]
    pub fn executor(mut self, executor: Arc<dyn crate::seam::Spawn>) -> Self {
        self.executor = Some(Executor::Custom(executor));
        self
    }

    /// Checks all settings and starts the client, which connects in the background at its first
    /// use.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for a setting outside its limits, no masters or too many, a master listed
    /// twice, an unusable URL, or a [`runtime`](Builder::runtime) with several threads;
    /// [`Error::Start`] when the system gives no thread.
    pub fn build(mut self) -> Result<Redlock, Error> {
        let (origins, dialler, host) = self.start()?;
        let roster = Arc::new(Roster::default());
        let executor = host.executor.clone();
        let stop = host.stop.clone();
        let random = self.random.clone();
        let patience = self.settings.timeout();
        let of_address = move |address| -> Arc<dyn Master> {
            let parts = LinkSettings {
                address,
                dialler: dialler.clone(),
                scripts: SCRIPTS,
                handshake: OnceLock::new(),
                roster: roster.clone(),
                random: random.clone(),
                patience,
            };
            RedisMaster::new(parts, &executor, stop.clone())
        };
        let first = origins.iter().find_map(Checked::address).cloned();
        let given = origins.into_iter().map(|origin| match origin {
            Checked::Address(address) => of_address(address),
            Checked::Custom(master) => master,
        });
        let given = given.collect();
        let maker = first
            .map(|first| MasterMaker(Arc::new(move |url| Address::joining(url, &first).map(&of_address))));
        #[cfg(feature = "unstable-testing")]
        let maker = self.joining.or(maker);
        let masters = Masters::new(given, maker);
        let engine = Engine::new(masters, self.clock, self.random, self.settings, host.executor.clone());
        Ok(Redlock { inner: Arc::new(Inner { engine, host }) })
    }

    /// Examines the masters: whether each can be reached, is a master, remembers what it granted,
    /// has a correct clock and gives this user the rights it needs, whether they agree with each
    /// other and with these settings, and so whether a quorum can vote. It works whatever is wrong
    /// with them, on its own connections, and writes nothing, not even a record.
    ///
    /// It takes at most four times the [`timeout`](Builder::timeout) to connect, and one for each
    /// later question; all masters are examined at once. Masters without a URL are listed but not
    /// examined.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connections; nothing is left to clean up.
    ///
    /// # Errors
    ///
    /// Those of [`build`](Builder::build). What is wrong with a master is a finding, not an error.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|_| async move {
    /// use quorate::{Redlock, doctor::Severity};
    ///
    /// let report = Redlock::builder().master("redis://127.0.0.1:1").examine().await?; // nobody is there
    /// assert!(!report.has_quorum());
    /// let finding = &report.masters[0].findings[0];
    /// assert_eq!((finding.severity, finding.about), (Severity::Fail, "reach"));
    /// println!("{report}"); // a line for each finding, with what to do
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub async fn examine(mut self) -> Result<Report, Error> {
        let (origins, dialler, host) = self.start()?;
        let _until_then = host.stop.clone().drop_guard();
        let Self { settings, clock, random, .. } = self;
        let wall = i64::try_from(clock.wall().as_micros()).unwrap_or(i64::MAX);
        let wall_ahead = wall - i64::try_from(clock.now().since(Moment::default()).as_micros()).unwrap_or(0);
        let terms = Terms::of(&settings);
        let prefix = &settings.prefix;
        let name = format!("doctor:{:x}", random.next_u64());
        let kind = Kind::Lock;
        let visit = Visit {
            clock,
            record: terms.record.clone(),
            decree: terms.decree.clone(),
            key: format!("{prefix}{{{name}}}"),
            channel: format!("{}{name}", WakeChannelPrefix(prefix)),
            call: (kind.script(), LockId::of_nobody(name.into(), kind).inspection(prefix)),
            patience: settings.timeout(),
        };
        let (reply, facts) = oneshot::channel();
        host.executor.spawn(async move {
            let facts = join_all(origins.iter().map(|origin| origin.examine(&dialler, &visit))).await;
            let like = origins.iter().find_map(Checked::address);
            let joined = doctor::joined(&facts).into_iter();
            let joined = joined.filter_map(|name| Address::joining(&name, like?).ok());
            let joined: Vec<Checked> = joined.map(Checked::Address).collect();
            let more = join_all(joined.iter().map(|origin| origin.examine(&dialler, &visit))).await;
            let _ = reply.send([facts, more].concat()); // the caller may have gone
        });
        let (left, facts) = doctor::without_those_that_left(facts.await.map_err(|_| Error::Closed)?);
        let visitor = Visitor {
            terms,
            prefix: prefix.clone(),
            quorum: quorum(facts.len()),
            left,
            timeout: settings.timeout(),
            wall_ahead,
        };
        Ok(doctor::judge(&facts, &visitor))
    }

    /// [`examine`](Builder::examine) [without async](crate::blocking).
    pub fn examine_blocking(self) -> Result<Report, Error> {
        let has_own_thread = self.executor.is_none();
        blocking::wait_unless_lent(has_own_thread, self.examine())
    }

    /// Checks all settings, and starts the thread.
    fn start(&mut self) -> Result<(Vec<Checked>, Dialler, Host), Error> {
        self.settings.check()?;
        if let Some(Executor::Runtime(runtime)) = &self.executor
            && runtime.runtime_flavor() != RuntimeFlavor::CurrentThread
        {
            return Err(Invalid::runtime().into());
        }
        let origins = source::check(std::mem::take(&mut self.sources), self.password_from.as_ref())?;
        let dialler = Dialler::new(&self.roots)?;
        let host = match self.executor.take() {
            Some(executor) => Host::on(executor),
            None => Host::start().map_err(|error| Error::Start(Arc::new(error)))?,
        };
        Ok((origins, dialler, host))
    }
}
