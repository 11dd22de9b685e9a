//! The broken variants: each has one rule less, and what it breaks must be found. H1 to H8 are the
//! design's rules, T1 to T23 the traces of its review; `docs/DECISIONS.md` has what was added.

use super::profiles::{
    HANDED_ON, KINDS, LOCK, LOCK_CLOCKS, LOCK_LAGS, LOCK_OF_TWO, LOCK_TIMED, Profile, RW, RW_OF_THREE,
};
use super::world::Broken::{self, *};
use Flaw::*;

/// A rule that is missing: the table below says of each what the master or the client does instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    AcquireSparesExpiry,
    AnyTime,
    AskedAgainRaises,
    BreakAsRelease,
    BreakByRound,
    ConfirmAnyLease,
    ConfirmAnyNumber,
    ConfirmHeals,
    ConfirmKeepsFence,
    EndByEarlier,
    EndByT,
    EndedReaderRaisesLast,
    EndedWithoutOwner,
    EqualKeepsOwner,
    ExtendAnyToken,
    FirstForgottenSooner,
    ForgetsAfterQuarantine,
    ForgetsAtOnce,
    GrantForgetsOwn,
    GrantForgetsReader,
    GrantForgetsWriter,
    GrantLeavesOtherKind,
    GrantLeavesReader,
    GrantLeavesWriter,
    HealsAtLast,
    HealsBelowEnded,
    HealsBelowLast,
    HealsBelowRead,
    HealsByFence,
    KeptWithoutWidth,
    KindForgetsLast,
    MiddleOfTime,
    NoQuarantine,
    NoWord,
    OverByLater,
    OwnKeepsFromHealing,
    OwnReaderForgotten,
    OwnReaderRaisesLast,
    QuarantineByTime,
    ReaderForgotten,
    ReaderMindsReaders,
    ReaderRaisesLast,
    ReleaseAnyRound,
    ReleaseKeepsFence,
    ReleaseNeedsEntry,
    ReleaseNeedsRoom,
    SweepForgets,
    SweepRaisesLast,
    TransferAnyToken,
    TransferMakesEntry,
    UndoAnyRound,
    UndoEndsHold,
    UndoLowersFence,
    UndoRaisesLast,
    UndoRestoresLast,
    UndoTakesWord,
    UndoWithoutFirst,
    UndoneReaderForgotten,
    UndoneReaderRaisesLast,
}

/// A variant that must be found broken.
pub(crate) struct Variant {
    pub(crate) rule: &'static str,
    pub(crate) what: &'static str,
    /// Nothing, where the profile itself is too much.
    pub(crate) flaw: Option<Flaw>,
    pub(crate) breaks: Broken,
    pub(crate) profile: Profile,
}

const fn v(rule: &'static str, what: &'static str, flaw: Flaw, breaks: Broken, profile: Profile) -> Variant {
    Variant { rule, what, flaw: Some(flaw), breaks, profile }
}

/// How time is read, and how long a master remembers.
pub(crate) const TIMES: &[Variant] = &[
    v("H1 T1", "an end is written by the earlier clock", EndByEarlier, Exclusion, LOCK_LAGS),
    v("H1 T1", "an end is written by T alone", EndByT, Exclusion, LOCK_LAGS),
    v("H1", "an end is over when one clock says so", OverByLater, Exclusion, LOCK_CLOCKS),
    v("H1", "a quarantine's end is written by TIME alone", QuarantineByTime, Exclusion, LOCK_TIMED),
    Variant {
        rule: "H1",
        what: "votes of a master whose clock is off count, and T is old",
        flaw: None,
        breaks: Exclusion,
        profile: Profile { checks_clocks: false, ..LOCK_TIMED },
    },
    v("H2", "a call of any age is run", AnyTime, Resurrected, LOCK_CLOCKS),
    v(
        "H3 T3",
        "an acquire keeps the short expiry of a free name",
        AcquireSparesExpiry,
        Exclusion,
        LOCK_TIMED,
    ),
    v("H8 T4", "a name is forgotten a little after a release", ForgetsAtOnce, Revived, LOCK_LAGS),
    v(
        "H8 T5",
        "a name is remembered for a quarantine, without a step of its clock",
        ForgetsAfterQuarantine,
        Resurrected,
        LOCK_CLOCKS,
    ),
    v(
        "H8",
        "a name that its first owner released is remembered without a step of its clock",
        FirstForgottenSooner,
        Resurrected,
        LOCK_CLOCKS,
    ),
    v("H8", "a master that forgot votes at once", NoQuarantine, Exclusion, LOCK_TIMED),
];

/// What a grant does to the entries that are over, and an undo.
pub(crate) const GRANTS: &[Variant] = &[
    v("H4 T2", "a grant leaves a writer's ended entry", GrantLeavesWriter, Unique, RW),
    v("H4 T16", "a grant leaves a reader's ended entry", GrantLeavesReader, Unique, RW),
    v("H4 T17", "a grant leaves ended entries of another kind", GrantLeavesOtherKind, Overtaken, KINDS),
    v("H4 T17", "a grant of another kind does not keep what readers left", KindForgetsLast, Overtaken, KINDS),
    v("H4", "a sweep of ended readers raises nothing", SweepForgets, Overtaken, RW_OF_THREE),
    v("H4", "a sweep of ended readers raises `last`", SweepRaisesLast, Refused, RW),
    v("H5 T6", "the undo of a re-entry removes the hold", UndoEndsHold, Refused, RW),
    v("H5 T7", "an undo lowers the fence", UndoLowersFence, Rising, KINDS),
    v("H5 T8", "an undo restores `last`", UndoRestoresLast, Resurrected, RW),
    v("H5 T22", "an undo raises `last`", UndoRaisesLast, Refused, LOCK),
    v("H5", "an undo removes what its owner was granted later", UndoAnyRound, Exclusion, LOCK_TIMED),
    v("H5", "an undo does not tell its lease's first round", UndoWithoutFirst, Overtaken, LOCK),
    v(
        "H5",
        "an undo of a reader raises nothing for an earlier lease",
        UndoneReaderForgotten,
        Overtaken,
        Profile { leases: 2, steps: 100, ..RW_OF_THREE },
    ),
    v("H5", "an undo of a reader raises `last` for an earlier lease", UndoneReaderRaisesLast, Refused, RW),
    v("H5", "an undo of a reader takes the word of its release away", UndoTakesWord, Resurrected, RW),
];

/// What a master notes of leases that ended.
pub(crate) const ENDS: &[Variant] = &[
    v("H6", "a grant over another's ended entry raises nothing", GrantForgetsWriter, Overtaken, RW),
    v(
        "H6",
        "a grant over another's ended entry raises `last` without its owner",
        EndedWithoutOwner,
        Refused,
        LOCK,
    ),
    v("H6", "a grant over its owner's own entry raises nothing", GrantForgetsOwn, Overtaken, LOCK_OF_TWO),
    v("H6", "a grant to an owner that asks again raises `last`", AskedAgainRaises, Refused, LOCK),
    v("H6", "a writer's grant over ended readers raises nothing", GrantForgetsReader, Overtaken, RW_OF_THREE),
    v("H6 T20", "a writer's grant over ended readers raises `last`", EndedReaderRaisesLast, Refused, RW),
    v("H6", "a reader's grant over its own entry raises nothing", OwnReaderForgotten, Overtaken, RW_OF_THREE),
    v("H6 T20", "a reader's grant over its own entry raises `last`", OwnReaderRaisesLast, Refused, RW),
    v("H6 T20", "a reader's release raises `last`", ReaderRaisesLast, Refused, RW),
    v("H6", "a reader's release raises nothing", ReaderForgotten, Overtaken, RW),
    v("H6", "a reader's release leaves no word", NoWord, Resurrected, RW),
    v("H6", "a break of a reader is its release", BreakAsRelease, Revived, RW),
    v("H6", "a break leaves what its owner entered again", BreakByRound, Resurrected, LOCK),
    v("H6", "a release removes what its owner was granted later", ReleaseAnyRound, Overtaken, LOCK),
    v("H6 T8", "a release raises nothing where another's entry is", ReleaseNeedsRoom, Resurrected, RW),
    v("H6 T8", "a release raises nothing where its entry is gone", ReleaseNeedsEntry, Resurrected, RW),
    v("H6 T19", "a release leaves the owner of an equal `last`", EqualKeepsOwner, Revived, LOCK),
    v("H6 T18", "a confirm does not raise the fence", ConfirmKeepsFence, Unique, LOCK),
    v("H6", "a release does not raise the fence", ReleaseKeepsFence, Resurrected, LOCK),
];

/// Where an extend may make its entry again, and where it may not.
pub(crate) const HEALS: &[Variant] = &[
    v("H7", "a heal below `last`", HealsBelowLast, Overtaken, RW),
    v("H7", "a heal of another owner at `last`", HealsAtLast, Resurrected, LOCK),
    v("H7", "a heal below a conflicting entry that is over", HealsBelowEnded, Overtaken, LOCK),
    v("H7", "a writer heals below readers that left", HealsBelowRead, Overtaken, RW),
    v("H7 T20", "a reader does not heal below readers that left", ReaderMindsReaders, Refused, RW),
    v("H7", "no heal below the fence", HealsByFence, Refused, LOCK),
    v("H7 T21", "an owner's own reader keeps its writer from healing", OwnKeepsFromHealing, Refused, RW),
    v("H7 T22", "a transfer makes an entry", TransferMakesEntry, Overtaken, HANDED_ON),
    v("H7", "a transfer of what its owner was granted later", TransferAnyToken, Overtaken, HANDED_ON),
    v("H7 T22", "a confirm makes an entry", ConfirmHeals, Overtaken, LOCK),
    v(
        "H7",
        "a confirm of an earlier lease's entry",
        ConfirmAnyLease,
        Refused,
        Profile { breaks: true, ..LOCK_OF_TWO },
    ),
    v("H7", "a confirm below the number of a later grant", ConfirmAnyNumber, Unique, RW_OF_THREE),
    v("H7", "an extend below the number of a later grant", ExtendAnyToken, Resurrected, LOCK),
];
