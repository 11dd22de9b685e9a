//! The result of an examination.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The result of an examination. Its text has a line for each finding, grouped by master.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Each master, in the order of the list.
    pub masters: Vec<Examined>,
    /// Findings about all masters together; the last says whether they are a quorum.
    pub together: Vec<Finding>,
    /// How many masters are needed for a lock.
    pub quorum: usize,
}

/// One master.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Examined {
    /// The master, as in its URL, without user and password.
    pub master: Arc<str>,
    /// A finding for each thing that was looked at.
    pub findings: Vec<Finding>,
    /// When it has a vote: zero for now, longer if it is in quarantine, or will be as soon as a
    /// client connects, and `None` if something has to be fixed first.
    #[cfg_attr(feature = "serde", serde(rename = "votes_in_ms", serialize_with = "crate::json::ms"))]
    pub votes_in: Option<Duration>,
    /// The median of some round trips; `None` if it did not answer.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "round_trip_ms", serialize_with = "crate::json::precise_ms")
    )]
    pub round_trip: Option<Duration>,
    /// How far (ms) its clock is ahead of the masters' median, or of this host's if too few
    /// answered; `None` if it is not known.
    #[cfg_attr(feature = "serde", serde(rename = "clock_ahead_ms"))]
    pub clock_ahead: Option<i64>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What was looked at, in a word or two: `reach`, `login`, `role`, `version`, `memory`,
    /// `persistence`, `writes`, `commands`, `rights`, `calls`, `clock` or `record` of one master;
    /// `processes`, `clocks`, `set` or `quorum` of all.
    pub about: &'static str,
    /// What was found.
    pub what: String,
    /// What to do about it, if anything. It names options of the `quorate` command; the methods of
    /// [`Builder`](crate::Builder) have the same names. `USER` stands for the user in the master's
    /// URL.
    pub fix: Option<String>,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Severity {
    /// It is as it should be.
    Ok,
    /// It works, but perhaps not for long, or at a cost.
    Warn,
    /// Because of it a master has no vote, or all together are no quorum.
    Fail,
}

impl Report {
    /// How many masters have a vote now.
    pub fn can_vote(&self) -> usize {
        self.masters.iter().filter(|examined| examined.votes_in == Some(Duration::ZERO)).count()
    }

    /// Whether these are enough for a lock.
    pub fn has_quorum(&self) -> bool {
        self.can_vote() >= self.quorum
    }

    /// The worst of all findings.
    pub fn severity(&self) -> Severity {
        let findings = self.masters.iter().flat_map(|examined| &examined.findings).chain(&self.together);
        findings.map(|finding| finding.severity).max().unwrap_or(Severity::Ok)
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Report {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;

        let mut fields = serializer.serialize_struct("Report", 5)?;
        fields.serialize_field("severity", &self.severity())?;
        fields.serialize_field("quorum", &self.quorum)?;
        fields.serialize_field("can_vote", &self.can_vote())?;
        fields.serialize_field("masters", &self.masters)?;
        fields.serialize_field("together", &self.together)?;
        fields.end()
    }
}

impl Finding {
    pub(super) fn ok(about: &'static str, what: impl Into<String>) -> Self {
        Self { severity: Severity::Ok, about, what: what.into(), fix: None }
    }

    pub(super) fn warn(about: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { severity: Severity::Warn, about, what: what.into(), fix: Some(fix.into()) }
    }

    pub(super) fn fail(about: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { severity: Severity::Fail, ..Self::warn(about, what, fix) }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        })
    }
}

/// Without the severity.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.about, self.what)?;
        match &self.fix {
            Some(fix) => write!(f, " -> {fix}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ALL: &str = "all masters";
        let names = self.masters.iter().map(|examined| examined.master.chars().count());
        let width = names.max().unwrap_or(0).max(ALL.len());
        let mut first = true;
        let mut line = |subject: &str, finding: &Finding| {
            let end = if std::mem::take(&mut first) { "" } else { "\n" };
            write!(f, "{end}{:<4}  {subject:<width$}  {finding}", finding.severity)
        };
        for examined in &self.masters {
            examined.findings.iter().try_for_each(|finding| line(&examined.master, finding))?;
        }
        self.together.iter().try_for_each(|finding| line(ALL, finding))
    }
}
