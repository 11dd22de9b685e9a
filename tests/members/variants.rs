//! The rules that cannot be left out, one at a time, and what breaks without each.

use super::scenes::Scene;
use super::world::Broken::{self, InTheWay, TokenFell, TwoDecrees, TwoHold};

/// A rule that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Flaw {
    /// The new set decides as soon as the generation is joint.
    FinishesAtOnce,
    /// A quorum of the old set is enough in a joint generation.
    OneQuorum,
    /// One master's word decides.
    OneAccepts,
    /// A master that forgot is written from what others have, without asking them.
    ReadmitsAtOnce,
    /// It is written from what a majority has, which promises nothing.
    ReadmitsByReading,
    /// Clients write records from their own lists.
    BeginsByWriting,
    /// A set that most masters forgot is written anew without the steps of beginning.
    BeginsAgainAtOnce,
    /// A token is agreed on by a majority of old and new masters together.
    TokenOfUnion,
    /// A new grant asks old and new masters at once.
    AsksAll,
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
    v("the new set decides as soon as it is joint", Flaw::FinishesAtOnce, TwoHold, Scene::Finish),
    v("one quorum in a joint generation", Flaw::OneQuorum, TwoHold, Scene::Change),
    v("a decree of one master", Flaw::OneAccepts, TwoDecrees, Scene::Change),
    v(
        "clients write records from their lists, which overlap",
        Flaw::BeginsByWriting,
        TwoHold,
        Scene::Overlap,
    ),
    v("clients with an old list write records", Flaw::BeginsByWriting, TwoHold, Scene::OldList),
    v("most forgot, and are written anew at once", Flaw::BeginsAgainAtOnce, TwoHold, Scene::OldRecord),
    v("a token of the union", Flaw::TokenOfUnion, TokenFell, Scene::Tokens),
    v("a joint acquire asks all at once", Flaw::AsksAll, InTheWay, Scene::Change),
];

/// What needs an order of steps that walks do not find: all orders are searched.
pub(crate) const SEARCHED: &[Variant] = &[
    v("a master that forgot is written anew at once", Flaw::ReadmitsAtOnce, TwoDecrees, Scene::Decree),
    v("a master that forgot is readmitted by a read", Flaw::ReadmitsByReading, TwoDecrees, Scene::Decree),
];
