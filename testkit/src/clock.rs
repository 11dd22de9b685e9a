//! A server's own wall clock, which a test sets while the server runs.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::process::Pid;
use tempfile::TempDir;

use crate::server::RedisServer;

/// What is preloaded into a server that has a clock of its own.
const SHIM: &str = include_str!("../shim/clock.c");

/// For servers started by [`RedisServer::start_with_clock`] or [`Masters::start_with_clocks`](crate::Masters::start_with_clocks).
impl RedisServer {
    /// Steps its wall clock by so many milliseconds: forward, or back if it is below 0. Steps add up.
    ///
    /// # Panics
    ///
    /// When it has the machine's clock.
    pub fn step_clock(&self, millis: i64) {
        self.own_clock()
            .change(|offset| offset.checked_add(micros(millis)).expect("no clock is that far off"));
    }

    /// Sets its wall clock to the machine's, and so many milliseconds: 0 undoes all steps.
    ///
    /// # Panics
    ///
    /// When it has the machine's clock.
    pub fn set_clock_offset(&self, millis: i64) {
        self.own_clock().change(|_| micros(millis));
    }

    /// Steps its wall clock by so many milliseconds, and back after a time, as a clock does that two sources set.
    ///
    /// # Cancel safety
    ///
    /// The clock is stepped at the first poll, and stepped back when the future is dropped.
    ///
    /// # Panics
    ///
    /// When it has the machine's clock.
    pub async fn strobe_clock(&self, millis: i64, during: Duration) {
        self.step_clock(millis);
        let _strobe = Strobe { server: self, millis };
        tokio::time::sleep(during).await;
    }
}

/// Steps a clock back when it is dropped.
struct Strobe<'a> {
    server: &'a RedisServer,
    millis: i64,
}

impl Drop for Strobe<'_> {
    fn drop(&mut self) {
        self.server.step_clock(-self.millis);
    }
}

fn micros(millis: i64) -> i64 {
    millis.checked_mul(1000).expect("no clock is that far off")
}

/// How far a server's wall clock is off. It outlives restarts of the server.
#[derive(Debug)]
pub(crate) struct Clock {
    folder: TempDir,
    file: File,
    /// In microseconds, as in the file.
    offset: Mutex<i64>,
}

impl Clock {
    /// A clock that is right.
    pub(crate) fn new() -> Result<Self, String> {
        static COMPILED: OnceLock<Result<Vec<u8>, String>> = OnceLock::new();
        let shim = COMPILED.get_or_init(|| compile("cc")).as_ref().map_err(Clone::clone)?;
        let failed = |error| format!("no file for its clock: {error}");
        let folder = TempDir::new().map_err(failed)?;
        std::fs::write(shim_in(folder.path()), shim).map_err(failed)?;
        let file = File::create(offset_in(folder.path())).map_err(failed)?;
        let clock = Self { folder, file, offset: Mutex::new(0) };
        clock.change(|offset| offset);
        Ok(clock)
    }

    /// Makes a process that is to be started, and those that it starts, go by this clock.
    pub(crate) fn give_to(&self, command: &mut Command) {
        let folder = self.folder.path();
        command.env("LD_PRELOAD", shim_in(folder)).env("QUORATE_CLOCK", offset_in(folder));
    }

    /// Whether a process goes by this clock. A folder that nothing may be run from would prevent it, or a server that is
    /// linked statically, and the linker only warns, or says nothing.
    pub(crate) fn is_in(&self, process: Pid) -> bool {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", process.as_raw_nonzero()));
        // Without what is before the folder, which may be a link.
        let folder = self.folder.path().file_name().map(Path::new);
        let file = folder.map(|folder| offset_in(folder).display().to_string());
        file.is_some_and(|file| maps.is_ok_and(|maps| maps.contains(&file)))
    }

    /// The file has all eight bytes at once, as far as a process can see that has mapped it: the kernel copies an aligned
    /// word in one go.
    fn change(&self, change: impl FnOnce(i64) -> i64) {
        let mut offset = self.offset.lock().unwrap_or_else(PoisonError::into_inner);
        *offset = change(*offset);
        self.file.write_all_at(&offset.to_ne_bytes(), 0).expect("the clock's file can be written");
    }
}

fn shim_in(folder: &Path) -> PathBuf {
    folder.join("clock.so")
}

fn offset_in(folder: &Path) -> PathBuf {
    folder.join("offset")
}

/// Compiles the shim.
pub(crate) fn compile(compiler: &str) -> Result<Vec<u8>, String> {
    try_compile(compiler).map_err(|error| {
        format!("its clock needs a C compiler (apt-get install gcc libc6-dev): {compiler}: {error}")
    })
}

fn try_compile(compiler: &str) -> std::io::Result<Vec<u8>> {
    let folder = TempDir::new()?;
    let (source, shim) = (folder.path().join("clock.c"), shim_in(folder.path()));
    std::fs::write(&source, SHIM)?;
    let options = ["-shared", "-fPIC", "-O2", "-o"];
    let output = Command::new(compiler).args(options).arg(&shim).arg(&source).output()?;
    match output.status.success() {
        true => std::fs::read(shim),
        false => Err(std::io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}
