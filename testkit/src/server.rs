//! One real redis-server process.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal};
use tempfile::TempDir;

use crate::process::{BOUND, ProcessHandle, wait};
use crate::shim::{self, Shim};

/// How often a start may meet a port that is taken.
const PORTS_TO_TRY: u32 = 50;

/// Keeps a server for as long as the test process lives: its standard input is a pipe from there,
/// which ends with it, and only then without a line, so that the server's folder is to be removed
/// here. The server's output, and `pid N` before it, go to standard output.
///
/// When the test process ends while a server is stopped, the kernel hangs up on the server's
/// process group, which this is in.
const KEEPER: &str = r#"
trap '' HUP
folder=$1
shift
sh -c 'echo "pid $$"; exec "$@"' server "$@" </dev/null 2>&1 &
read -r over
kill -9 $! 2>/dev/null
wait
[ "$over" ] || rm -rf "$folder"
"#;

/// In a server's folder, what is the server's.
const DATA: &str = "data";

/// A redis-server on a loopback port that it bound itself, without persistence unless it is
/// configured. Dropping it kills it.
#[derive(Debug)]
pub struct RedisServer {
    /// It ends first, as it needs the folder and the shim.
    process: Process,
    port: u16,
    options: Vec<String>,
    /// Everything that is on the disk for it.
    folder: TempDir,
    data: PathBuf,
    /// What makes its clock its own, or none where it has the machine's.
    shim: Option<Arc<Shim>>,
}

/// Why a server did not start, with its log.
#[derive(Debug)]
pub struct StartError {
    what: String,
    log: String,
}

impl StartError {
    fn without_log(what: String) -> Self {
        Self { what, log: String::new() }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "redis-server did not start: {}\n--- its log ---\n{}", self.what, self.log)
    }
}

impl std::error::Error for StartError {}

#[derive(Debug)]
struct Process {
    keeper: Child,
    handle: ProcessHandle,
    log: Arc<Mutex<String>>,
    collector: Option<JoinHandle<()>>,
}

impl RedisServer {
    /// Starts a server.
    ///
    /// # Panics
    ///
    /// When it does not start, with its log.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with options of redis-server's command line: `["--maxmemory", "2mb"]`, say.
    /// `{dir}` in them stands for the server's own folder, and `{port}` for its port.
    ///
    /// # Panics
    ///
    /// When it does not start, with its log.
    pub fn start_with(options: &[&str]) -> Self {
        Self::try_start(options).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Starts a server, or says why it did not start.
    ///
    /// # Errors
    ///
    /// When redis-server is not installed, does not know an option, or is not ready in time.
    pub fn try_start(options: &[&str]) -> Result<Self, StartError> {
        Self::launch(options, own_folder()?, None)
    }

    /// Starts a server, as [`start_with`](Self::start_with) does, with a wall clock of its own: at
    /// first it is right, and [`step_clock`](Self::step_clock) and others set it while the server
    /// runs. It outlives restarts. The clock that only goes forward is the machine's.
    ///
    /// The test kit compiles what that takes, with `cc`.
    ///
    /// # Panics
    ///
    /// When it does not start, with its log, or when there is no C compiler.
    pub fn start_with_clock(options: &[&str]) -> Self {
        Self::try_start_with_clock(options).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The same, or says why it did not start.
    ///
    /// # Errors
    ///
    /// As [`try_start`](Self::try_start), or when there is no C compiler.
    pub fn try_start_with_clock(options: &[&str]) -> Result<Self, StartError> {
        let folder = own_folder()?;
        let shim = Shim::new(folder.path()).map_err(StartError::without_log)?;
        Self::launch(options, folder, Some(Arc::new(shim)))
    }

    fn launch(options: &[&str], folder: TempDir, shim: Option<Arc<Shim>>) -> Result<Self, StartError> {
        let data = folder.path().join(DATA);
        std::fs::create_dir(&data).map_err(no_folder)?;
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let mut tried = 0;
        loop {
            let port = next_port();
            tried += 1;
            match Process::start(port, folder.path(), &options, shim.as_deref()) {
                Ok(process) => return Ok(Self { port, options, folder, data, shim, process }),
                Err(error) if error.log.contains("Address already in use") && tried < PORTS_TO_TRY => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The folder that is its own.
    pub fn folder(&self) -> &std::path::Path {
        &self.data
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Sends it one command, on a connection of its own, and reads the answer.
    ///
    /// # Panics
    ///
    /// When it does not answer, or answers with an error.
    pub fn command<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let answer = self.try_command(words);
        answer.unwrap_or_else(|error| panic!("{words:?}: {error}\n{}", self.log()))
    }

    /// The same, where it may refuse.
    ///
    /// # Errors
    ///
    /// When it does not answer within 20 seconds, or answers with an error.
    pub fn try_command<T: redis::FromRedisValue>(&self, words: &[&str]) -> redis::RedisResult<T> {
        ask(self.address(), words)
    }

    /// All its keys that [are in use](crate::in_use).
    ///
    /// # Panics
    ///
    /// As [`command`](Self::command).
    pub fn keys(&self) -> Vec<String> {
        let (seconds, micros): (u64, u64) = self.command(&["TIME"]);
        let now = seconds * 1_000_000 + micros;
        crate::in_use(self.command(&["KEYS", "*"]), now, |key| self.try_command(&["HGETALL", key]).ok())
    }

    /// Stops it in its tracks (SIGSTOP): connections stay open, and nothing answers. Returns when
    /// it stands.
    ///
    /// # Panics
    ///
    /// When it does not stand in time.
    pub fn freeze(&self) {
        self.process.must("to stand still", self.process.handle.freeze());
    }

    /// Lets it go on (SIGCONT).
    pub fn thaw(&self) {
        self.process.handle.thaw();
    }

    /// Kills it (SIGKILL), frozen or not. Returns when it is gone.
    ///
    /// # Panics
    ///
    /// When it is not gone in time.
    pub fn kill(&self) {
        self.process.must("to be gone", self.process.handle.kill());
    }

    /// Starts it again on the same port, without its data unless it persisted them. It is killed
    /// first if it lives.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn restart(&mut self) {
        self.kill();
        self.process = Process::start(self.port, self.folder.path(), &self.options, self.shim.as_deref())
            .unwrap_or_else(|error| panic!("{error}"));
    }

    pub(crate) fn shim(&self) -> Arc<Shim> {
        self.shim.clone().expect("a server with a clock of its own: start_with_clock")
    }
}

impl Process {
    fn start(port: u16, folder: &Path, options: &[String], shim: Option<&Shim>) -> Result<Self, StartError> {
        let port = port.to_string();
        let dir = folder.join(DATA).display().to_string();
        let options = options.iter().map(|option| option.replace("{dir}", &dir).replace("{port}", &port));
        let own = ["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", &dir];
        let mut keeper = Command::new("sh");
        keeper.process_group(0); // what a terminal tells this process does not reach it, and it ends as always
        if let Some(shim) = shim {
            shim.give_to(&mut keeper);
        }
        let mut keeper = keeper
            .args(["-c", KEEPER, "keeper"])
            .arg(folder)
            .arg("redis-server")
            .args(own)
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| StartError::without_log(error.to_string()))?;
        let mut output = BufReader::new(keeper.stdout.take().expect("it was piped"));
        let mut first = String::new();
        let read = output.read_line(&mut first);
        let pid = first.trim().strip_prefix("pid ").and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
        let Some(pid) = pid else {
            return Err(StartError::without_log(format!("its keeper said {first:?} ({read:?})")));
        };
        let log = Arc::new(Mutex::new(String::new()));
        let collector = Some(collect(output, log.clone()));
        let handle = ProcessHandle::new(pid);
        let mut process = Self { keeper, handle, log, collector };
        let has_clock = || {
            if shim.is_none_or(|shim| shim.is_in(pid)) {
                Ok(())
            } else {
                Err("it does not go by its own clock".to_owned())
            }
        };
        match process.wait_until_ready().and_then(|()| has_clock()) {
            Ok(()) => Ok(process),
            Err(what) => {
                process.end(); // so that the log is whole
                Err(StartError { what, log: process.log() })
            }
        }
    }

    fn wait_until_ready(&self) -> Result<(), String> {
        let ready = wait(|| {
            if self.log().contains("Ready to accept connections") {
                Some(Ok(()))
            } else {
                (!self.handle.is_alive()).then(|| Err("it ended".to_owned()))
            }
        });
        ready.unwrap_or_else(|| Err(format!("it was not ready within {BOUND:?}")))
    }

    /// Ends the server and its keeper, and reads the rest of the log.
    fn end(&mut self) {
        self.handle.signal(Signal::KILL);
        if let Some(mut input) = self.keeper.stdin.take() {
            let _ = input.write_all(b"over\n"); // the keeper ends, if it has not, and leaves the folder to us
        }
        let _ = self.keeper.wait();
        if let Some(collector) = self.collector.take() {
            let _ = collector.join();
        }
    }

    fn must(&self, what: &str, done: bool) {
        assert!(done, "waited in vain for redis-server {what}\n{}", self.log());
    }

    fn log(&self) -> String {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// Sends a server one command, on a connection of its own, and reads the answer.
pub(crate) fn ask<T: redis::FromRedisValue>(server: SocketAddr, words: &[&str]) -> redis::RedisResult<T> {
    let client = redis::Client::open(format!("redis://{server}"))?;
    let mut connection = client.get_connection_with_timeout(BOUND)?;
    connection.set_read_timeout(Some(BOUND))?;
    let mut command = redis::Cmd::new();
    words.iter().for_each(|word| {
        command.arg(word);
    });
    command.query(&mut connection)
}

fn own_folder() -> Result<TempDir, StartError> {
    shim::folder_in(&std::env::temp_dir()).map_err(no_folder)
}

fn no_folder(error: std::io::Error) -> StartError {
    StartError::without_log(format!("no folder: {error}"))
}

/// Ports below those that the system gives out by itself, each tried once a process, another start
/// in each process.
fn next_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    const FIRST: u32 = 10_000;
    const COUNT: u32 = 20_000;
    let start = std::process::id().wrapping_mul(7919);
    let offset = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
    u16::try_from(FIRST + offset).expect("it is below 30,000")
}

/// Reads the server's output to its end, on a thread.
fn collect(mut output: impl Read + Send + 'static, log: Arc<Mutex<String>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = output.read(&mut buffer) {
            let text = String::from_utf8_lossy(&buffer[..read]);
            log.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
        }
    })
}
