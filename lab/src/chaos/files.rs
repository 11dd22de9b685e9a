//! The files that a run writes. They are opened before anything starts, so that an error is
//! reported then, not after an hour.

use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use quorate_cli::exit::{self, Code, Failure};
use quorate_cli::page;

use super::ChaosArgs;
use crate::codes;

/// Where the report and the history go, as far as they were asked for.
#[derive(Debug)]
pub(super) struct Files {
    report: Option<Place>,
    history: Option<Place>,
}

/// A file that can be written. If it was not there before, and nothing comes of the run, it is
/// removed again.
#[derive(Debug)]
struct Place {
    option: &'static str,
    path: PathBuf,
    file: File,
    is_new: bool,
}

impl Files {
    /// Opens them. The history begins anew; a report that was there stays until there is another.
    pub(super) fn open(args: &ChaosArgs) -> Result<Self, Failure> {
        let open =
            |option, path: &Option<PathBuf>| path.as_ref().map(|path| Place::open(option, path)).transpose();
        let files =
            Self { report: open("--report", &args.report)?, history: open("--history", &args.history)? };
        if let (Some(report), Some(history)) = (&files.report, &files.history)
            && report.id()? == history.id()?
        {
            let one = history.wrong("--report is the same file");
            return Err(one);
        }
        if let Some(history) = &files.history {
            history.file.set_len(0).map_err(|error| history.wrong(error))?;
        }
        Ok(files)
    }

    /// Writes the report, and says how the command ends that found this.
    pub(super) fn end(self, found: Code, page: impl FnOnce() -> String) -> Result<Code, Failure> {
        let written = self.report.as_ref().map_or(Ok(()), |report| report.write(&page()));
        match written {
            // The verdict matters more than the failed report.
            Err(failure) if found == codes::VIOLATED => {
                quorate_cli::say::say(failure.message);
                Ok(found)
            }
            written => written.map(|()| found),
        }
    }
}

impl Place {
    fn open(option: &'static str, path: &Path) -> Result<Self, Failure> {
        page::check_place(option, path)?;
        let before = fs::metadata(path);
        // What is in a device never ends, and what goes into one never comes back.
        if before.as_ref().is_ok_and(|before| !before.is_file()) {
            let why = "it is there, and no regular file";
            return Err(Failure::of_file(exit::USAGE, option, path, why));
        }
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|error| Failure::of_file(exit::USAGE, option, path, error))?;
        Ok(Self { option, path: path.to_owned(), file, is_new: before.is_err() })
    }

    /// What tells it from other files, whatever they are called.
    fn id(&self) -> Result<(u64, u64), Failure> {
        let id = |file: Metadata| (file.dev(), file.ino());
        self.file.metadata().map(id).map_err(|error| self.wrong(error))
    }

    fn write(&self, text: &str) -> Result<(), Failure> {
        let mut file = &self.file;
        let written: io::Result<()> = file.set_len(0).and_then(|()| file.write_all(text.as_bytes()));
        written.map_err(|error| Failure { code: exit::FAILED, ..self.wrong(error) })
    }

    fn wrong(&self, why: impl fmt::Display) -> Failure {
        Failure::of_file(exit::USAGE, self.option, &self.path, why)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_new && self.file.metadata().is_ok_and(|file| file.len() == 0) {
            let _ = fs::remove_file(&self.path); // an empty file more is no harm
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A report that cannot be written any more.
    fn full() -> Files {
        let file = OpenOptions::new().read(true).open("/dev/null").unwrap();
        let report = Place { option: "--report", path: "r.html".into(), file, is_new: false };
        Files { report: Some(report), history: None }
    }

    #[test]
    fn a_violation_is_told_though_the_report_cannot_be_written() {
        assert_eq!(full().end(codes::VIOLATED, String::new).unwrap(), codes::VIOLATED);
        for found in [exit::OK, codes::INCONCLUSIVE] {
            let failure = full().end(found, String::new).unwrap_err();
            assert_eq!(failure.code, exit::FAILED);
            assert!(failure.message.starts_with("--report r.html: "), "{}", failure.message);
        }
        let none = Files { report: None, history: None };
        assert_eq!(none.end(exit::OK, || panic!("nobody reads it")).unwrap(), exit::OK);
    }
}
