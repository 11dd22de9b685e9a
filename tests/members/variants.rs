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
    /// A decision is carried a long time after it was made.
    CarriesLate,
    /// A ballot that is refused counts as a majority that forgot.
    TakesRefusalForLoss,
    /// A master that forgot is written from what others have, without asking them.
    ReadmitsAtOnce,
    /// It is written from what a majority has, which promises nothing.
    ReadmitsByReading,
    /// It is written by what a majority promised before it forgot.
    ReadmitsByOldEvidence,
    /// It is written without what the first phase found accepted.
    ForgetsAccepted,
    /// Where most forgot, what the rest accepted is not decided, but told to those. Breaks nothing
    /// that the walks find; a test of `Membership` has a row of steps.
    PassesOver,
    /// An older generation is carried to masters that have a newer one.
    CarriesDown,
    /// A generation is carried to a master that forgot, which votes then.
    CarriesToForgetful,
    /// A candidate that forgot is a member by a newer generation alone. Breaks nothing that the
    /// walks find, as above.
    CarriesToCandidate,
    /// All candidates have one id, so a decree names none of them.
    SameIds,
    /// Clients write records from their own lists.
    BeginsByWriting,
    /// Candidates become members long after all of them were read.
    CompletesLate,
    /// Nobody who knows the newest generation is connected when most masters forget.
    NobodyConnected,
    /// Masters without a record, where most forgot, are members at once. Breaks nothing.
    BeginsAgainWithoutSteps,
    /// The same, without a quarantine.
    BeginsAgainAtOnce,
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
    v("masters accept while they are quarantined", Flaw::AcceptsInQuarantine, TwoDecrees, Scene::Decided),
    v("a decision is carried late", Flaw::CarriesLate, TwoDecrees, Scene::Decided),
    v("most forgot, and nobody is connected", Flaw::NobodyConnected, TwoDecrees, Scene::Decided),
    v("an older generation is carried", Flaw::CarriesDown, TwoHold, Scene::Change),
    v("a carry is the vote of one that forgot", Flaw::CarriesToForgetful, TwoHold, Scene::Change),
    v(
        "clients write records from their lists, which overlap",
        Flaw::BeginsByWriting,
        TwoHold,
        Scene::Overlap,
    ),
    v("clients with an old list write records", Flaw::BeginsByWriting, TwoHold, Scene::OldList),
    v("candidates become members late", Flaw::CompletesLate, TwoHold, Scene::Overlap),
    v("most forgot, and vote at once", Flaw::BeginsAgainAtOnce, TwoHold, Scene::Change),
];

/// Laxer rules of which the walks find nothing: most are safe.
pub(crate) const HARMLESS: &[(Flaw, Scene)] = &[
    (Flaw::WatchesItsOwn, Scene::InARow),
    (Flaw::WatchesItsOwn, Scene::Change),
    (Flaw::PassesOver, Scene::Change),
    (Flaw::PassesOver, Scene::Decree),
    (Flaw::CarriesToCandidate, Scene::Change),
    (Flaw::CarriesToCandidate, Scene::Decree),
    (Flaw::BeginsAgainWithoutSteps, Scene::Decree),
    (Flaw::BeginsAgainWithoutSteps, Scene::OldRecord),
];

/// What needs an order of steps that walks do not find: all orders are searched.
pub(crate) const SEARCHED: &[Variant] = &[
    v("a master that forgot is written anew at once", Flaw::ReadmitsAtOnce, TwoDecrees, Scene::Decree),
    v("a master that forgot is readmitted by a read", Flaw::ReadmitsByReading, TwoDecrees, Scene::Decree),
    v("it is, by promises from before", Flaw::ReadmitsByOldEvidence, TwoDecrees, Scene::Decree),
    v("it is, without what was accepted", Flaw::ForgetsAccepted, TwoDecrees, Scene::Decree),
    v("a refused ballot is taken for a loss", Flaw::TakesRefusalForLoss, TwoDecrees, Scene::Decree),
    v("masters accept what they did not promise", Flaw::AcceptsUnasked, TwoDecrees, Scene::Decree),
    v("all candidates have one id", Flaw::SameIds, TwoDecrees, Scene::Added),
];
