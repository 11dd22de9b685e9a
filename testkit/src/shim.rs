//! What is preloaded into a server that has a wall clock and a disk of its own.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::process::Pid;
use tempfile::TempDir;

/// Its sources, by their names.
const SOURCES: [(&str, &str); 2] =
    [("clock.c", include_str!("../shim/clock.c")), ("disk.c", include_str!("../shim/disk.c"))];

/// How a server is deceived. It outlives restarts of the server.
#[derive(Debug)]
pub(crate) struct Shim {
    folder: TempDir,
    /// How far its wall clock is off, in microseconds.
    pub(crate) offset: Number,
    /// How much longer its disk takes, in microseconds.
    pub(crate) disk: Number,
}

impl Shim {
    /// A clock that is right, and a disk that is as quick as it is. What it takes is in a folder of
    /// its own, in this one.
    pub(crate) fn new(parent: &Path) -> Result<Self, String> {
        static COMPILED: OnceLock<Result<Vec<u8>, String>> = OnceLock::new();
        let shim = COMPILED.get_or_init(|| compile("cc")).as_ref().map_err(Clone::clone)?;
        let failed = |error| format!("no file for its clock: {error}");
        let folder = folder_in(parent).map_err(failed)?;
        std::fs::write(shim_in(folder.path()), shim).map_err(failed)?;
        let number = |path: &Path| Number::create(path).map_err(failed);
        let offset = number(&offset_in(folder.path()))?;
        let disk = number(&disk_in(folder.path()))?;
        Ok(Self { folder, offset, disk })
    }

    /// Makes a process that is to be started, and those that it starts, go by this.
    pub(crate) fn give_to(&self, command: &mut Command) {
        let folder = self.folder.path();
        command.env("LD_PRELOAD", shim_in(folder));
        command.env("QUORATE_CLOCK", offset_in(folder)).env("QUORATE_DISK", disk_in(folder));
    }

    /// Whether a process goes by this. A folder that nothing may be run from would prevent it, or a
    /// server that is linked statically, and the linker only warns, or says nothing.
    pub(crate) fn is_in(&self, process: Pid) -> bool {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", process.as_raw_nonzero()));
        // Without what is before the folder, which may be a link.
        let folder = self.folder.path().file_name().map(Path::new);
        let file = folder.map(|folder| offset_in(folder).display().to_string());
        file.is_some_and(|file| maps.is_ok_and(|maps| maps.contains(&file)))
    }
}

/// A new folder in another one, by whose name one sees what left it if it is there still.
pub(crate) fn folder_in(parent: &Path) -> std::io::Result<TempDir> {
    tempfile::Builder::new().prefix("quorate-").tempdir_in(parent)
}

/// A number that a process sees as soon as it is written.
#[derive(Debug)]
pub(crate) struct Number {
    file: File,
    now: Mutex<i64>,
}

impl Number {
    fn create(path: &Path) -> std::io::Result<Self> {
        let number = Self { file: File::create(path)?, now: Mutex::new(0) };
        number.change(|now| now);
        Ok(number)
    }

    /// The file has all eight bytes at once, as far as a process can see that has mapped it: the
    /// kernel copies an aligned word in one go.
    pub(crate) fn change(&self, change: impl FnOnce(i64) -> i64) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        *now = change(*now);
        self.file.write_all_at(&now.to_ne_bytes(), 0).expect("the shim's file can be written");
    }
}

fn shim_in(folder: &Path) -> PathBuf {
    folder.join("shim.so")
}

fn offset_in(folder: &Path) -> PathBuf {
    folder.join("offset")
}

fn disk_in(folder: &Path) -> PathBuf {
    folder.join("disk")
}

/// Compiles the shim.
pub(crate) fn compile(compiler: &str) -> Result<Vec<u8>, String> {
    try_compile(compiler).map_err(|error| {
        format!("its clock needs a C compiler (apt-get install gcc libc6-dev): {compiler}: {error}")
    })
}

fn try_compile(compiler: &str) -> std::io::Result<Vec<u8>> {
    let folder = folder_in(&std::env::temp_dir())?;
    let shim = shim_in(folder.path());
    let mut command = Command::new(compiler);
    command.args(["-shared", "-fPIC", "-O2", "-o"]).arg(&shim);
    for (name, source) in SOURCES {
        let path = folder.path().join(name);
        std::fs::write(&path, source)?;
        command.arg(path);
    }
    let output = command.output()?;
    if output.status.success() {
        std::fs::read(shim)
    } else {
        Err(std::io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
    }
}
