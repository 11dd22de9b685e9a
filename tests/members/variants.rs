//! The rules that cannot be left out, one at a time, and what breaks without each.

use super::scenes::Scene;
use super::world::Broken::{self, TwoDecrees, TwoHold};

/// A rule that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Flaw {
    /// The next change is proposed at once.
    NoWatch,
    /// The watch looks at a majority of the last generation, not of the one before. Breaks nothing.
    WatchesItsOwn,
    /// The votes of a round count whatever generation they are given under.
    CountsAnyGeneration,
    /// One master is replaced by another: two change at once.
    TwoAtOnce,
    /// One master's word decides.
    OneAccepts,
    /// Masters accept a ballot that they did not promise in this incarnation.
    AcceptsUnasked,
    /// Masters accept while they are quarantined.
    AcceptsInQuarantine,
    /// A master that forgot is written from what others have, without asking them.
    ReadmitsAtOnce,
    /// It is written from what a majority has, which promises nothing.
    ReadmitsByReading,
    /// It is written by what a majority promised before it forgot.
    ReadmitsByOldEvidence,
    /// It is written without what the first phase found accepted.
    ForgetsAccepted,
    /// Where most restarted with their records, one is written by what the others promised, without
    /// what it accepted.
    OverwritesDecree,
    /// A client resumes a set by itself of which at least half of the masters have no record.
    ResumesItself,
    /// An older generation is carried to masters that have a newer one.
    CarriesDown,
    /// A generation is carried to a master that forgot, which votes then.
    CarriesToForgetful,
    /// A candidate that forgot is a member by a newer generation alone. Breaks nothing that the
    /// walks find, as above.
    CarriesToCandidate,
    /// All candidates have one id, so a decree names none of them.
    SameIds,
    /// A set begins without candidates: its masters are members at once.
    BeginsByWriting,
    /// A set begins when a majority of its masters answered.
    BeginsWithoutAll,
    /// A candidate that was left over a quarantine ago gives its id to the set that begins.
    GivesOldIds,
    /// A set begins with an older list than the one that a master shows.
    StaleInit,
    /// Candidates become members long after all of them were read.
    PromotesUnready,
    /// A set's id is a digest of its first list.
    IdOfList,
}

/// A variant that must be found broken.
pub(crate) struct Variant {
    pub(crate) what: &'static str,
    pub(crate) flaw: Flaw,
    pub(crate) breaks: Broken,
    pub(crate) scene: Scene,
}

const fn v(what: &'static str, flaw: Flaw, breaks: Broken, scene: Scene) -> Variant {
    Variant { what, flaw, breaks, scene }
}

pub(crate) const VARIANTS: &[Variant] = &[
    v("the next change is proposed at once", Flaw::NoWatch, TwoHold, Scene::InARow),
    v("votes count under any generation", Flaw::CountsAnyGeneration, TwoHold, Scene::InARow),
    v("two masters change at once", Flaw::TwoAtOnce, TwoHold, Scene::Change),
    v("a decree of one master", Flaw::OneAccepts, TwoDecrees, Scene::Change),
    v("an older generation is carried", Flaw::CarriesDown, TwoDecrees, Scene::Decree),
    v("a carry is the vote of one that forgot", Flaw::CarriesToForgetful, TwoHold, Scene::Change),
    v("a rejoin overwrites what was accepted", Flaw::OverwritesDecree, TwoDecrees, Scene::Decided),
    v("a client resumes a lost set", Flaw::ResumesItself, TwoDecrees, Scene::Decided),
    v("a client with an old list resumes its set", Flaw::ResumesItself, TwoHold, Scene::OldRecord),
    v("a set begins without candidates", Flaw::BeginsByWriting, TwoHold, Scene::Overlap),
    v("a set begins without all answers", Flaw::BeginsWithoutAll, TwoHold, Scene::OldRecord),
    v("a set begins with an older list", Flaw::StaleInit, TwoHold, Scene::OldList),
    v("candidates become members late", Flaw::PromotesUnready, TwoHold, Scene::Overlap),
    v("a set's id is a digest of its list", Flaw::IdOfList, TwoHold, Scene::Dead),
];

/// Laxer rules of which the walks find nothing: most are safe.
pub(crate) const HARMLESS: &[(Flaw, Scene)] = &[
    (Flaw::WatchesItsOwn, Scene::InARow),
    (Flaw::WatchesItsOwn, Scene::Change),
    (Flaw::AcceptsInQuarantine, Scene::Decree),
    (Flaw::AcceptsInQuarantine, Scene::Decided),
    (Flaw::CarriesToCandidate, Scene::Change),
    (Flaw::CarriesToCandidate, Scene::Begin),
    (Flaw::GivesOldIds, Scene::Begin),
];

/// What needs an order of steps that walks do not find: all orders are searched.
pub(crate) const SEARCHED: &[Variant] = &[
    v("a master that forgot is written anew at once", Flaw::ReadmitsAtOnce, TwoDecrees, Scene::Decree),
    v("a master that forgot is readmitted by a read", Flaw::ReadmitsByReading, TwoDecrees, Scene::Decree),
    v("it is, by promises from before", Flaw::ReadmitsByOldEvidence, TwoDecrees, Scene::Decree),
    v("it is, without what was accepted", Flaw::ForgetsAccepted, TwoDecrees, Scene::Decree),
    v("masters accept what they did not promise", Flaw::AcceptsUnasked, TwoDecrees, Scene::Decree),
    v("all candidates have one id", Flaw::SameIds, TwoDecrees, Scene::Added),
];
