//! The protocol's broken variants: each has one check less, or a setting that is too weak, and what it breaks must be
//! found.

use crate::profiles::{
    Broken, EXTENDED, LOSS, LOSS_EXTENDED_LATE, LOSS_RELEASED, PLAIN, Profile,
    Proposals::{Any, Clock},
    RELEASED, ROLLED_BACK_EXTENDED, TWICE,
};

/// A check that is missing: the variants below say of each what it comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    OneRound,
    MajorityOfGrants,
    ConfirmByOwner,
    ConfirmHeals,
    ConfirmWithoutHold,
    ExtendByOwner,
    ExtendInQuarantine,
    HealAboveCounter,
    HealByNumber,
    HealInQuarantine,
    HealReleased,
    LateVotes,
    ReleaseByGrant,
    ReleaseByHold,
}

/// A protocol that does not hold.
pub(crate) struct Variant {
    pub(crate) what: &'static str,
    pub(crate) profile: Profile,
    pub(crate) breaks: Broken,
}

const fn variant(what: &'static str, breaks: Broken, profile: Profile) -> Variant {
    Variant { what, profile, breaks }
}

const fn without(flaw: Flaw, profile: Profile) -> Profile {
    Profile { flaw: Some(flaw), ..profile }
}

/// How an acquire comes to its token.
pub(crate) const TOKENS: [Variant; 4] = [
    variant(
        "the greatest grant is the token, and is not written back",
        Broken::Unique,
        without(Flaw::OneRound, PLAIN),
    ),
    variant(
        "a master confirms what is gone or another's, if its counter is not above the token",
        Broken::Unique,
        without(Flaw::ConfirmWithoutHold, PLAIN),
    ),
    variant(
        "a master confirms what is gone, if its counter is not above the token",
        Broken::Unique,
        without(Flaw::ConfirmHeals, PLAIN),
    ),
    variant(
        "a master confirms by owner, whatever its counter, and an acquire runs twice",
        Broken::Unique,
        without(Flaw::ConfirmByOwner, Profile { counters: &[0, 1], ..TWICE }),
    ),
];

/// Five masters, for with three this is no flaw: a majority of two grants, or of three, is one of three masters.
pub(crate) const OF_FIVE: Variant = variant(
    "a majority of the grants that are known, instead of all masters, gives a token in one round",
    Broken::Rising,
    without(Flaw::MajorityOfGrants, Profile { counters: &[0, 2], proposals: Any(&[0]), ..PLAIN }),
);

/// How a hold goes on, and ends.
pub(crate) const EXTENDS: [Variant; 6] = [
    variant(
        "a master extends by owner, whatever its counter",
        Broken::Overtaken,
        without(Flaw::ExtendByOwner, EXTENDED),
    ),
    variant(
        "a master heals, whatever its counter",
        Broken::Overtaken,
        without(Flaw::HealAboveCounter, EXTENDED),
    ),
    variant(
        "a master heals what its record says was released",
        Broken::Resurrected,
        without(Flaw::HealReleased, RELEASED),
    ),
    variant(
        "a release leaves no word where it finds no hold",
        Broken::Resurrected,
        without(Flaw::ReleaseByHold, RELEASED),
    ),
    variant(
        "a release leaves no word where nothing was granted",
        Broken::Resurrected,
        without(Flaw::ReleaseByGrant, RELEASED),
    ),
    variant(
        "a master heals by the number, though its record says that another has it",
        Broken::Resurrected,
        without(Flaw::HealByNumber, RELEASED),
    ),
];

/// How tokens rise though a master has forgotten.
pub(crate) const LOSSES: [Variant; 6] = [
    variant(
        "no clock, no quarantine",
        Broken::Unique,
        Profile { proposals: Any(&[0]), last_tick: 0, band: None, quarantine: 0, ..LOSS },
    ),
    variant(
        "no clock, but a quarantine",
        Broken::Rising,
        Profile { proposals: Any(&[0]), band: None, ..LOSS },
    ),
    variant(
        "a clock, but no quarantine and old proposals accepted",
        Broken::Unique,
        Profile { proposals: Clock { skew: 0 }, band: None, quarantine: 0, ..LOSS },
    ),
    variant("old proposals accepted", Broken::Unique, Profile { band: None, ..LOSS }),
    variant("no quarantine", Broken::Unique, Profile { quarantine: 0, ..LOSS }),
    variant("a quarantine of only twice the band", Broken::Unique, Profile { quarantine: 2, ..LOSS }),
];

/// How holds go on though a master has forgotten.
pub(crate) const EXTENDS_WITH_LOSSES: [Variant; 7] = [
    variant(
        "a master in quarantine extends the hold that it still has, or has again",
        Broken::Overtaken,
        without(Flaw::ExtendInQuarantine, ROLLED_BACK_EXTENDED),
    ),
    variant(
        "a master in quarantine heals",
        Broken::Overtaken,
        without(Flaw::HealInQuarantine, ROLLED_BACK_EXTENDED),
    ),
    variant(
        "votes for an extend count though the lease is over",
        Broken::Overtaken,
        without(Flaw::LateVotes, ROLLED_BACK_EXTENDED),
    ),
    variant(
        "a lease as long as the quarantine",
        Broken::Overtaken,
        Profile { lease: Some(1), ..ROLLED_BACK_EXTENDED },
    ),
    variant(
        "a quarantine of only a lease and a band",
        Broken::Overtaken,
        Profile { quarantine: 2, ..LOSS_EXTENDED_LATE },
    ),
    variant(
        "a master in quarantine heals what was broken",
        Broken::Revived,
        without(Flaw::HealInQuarantine, LOSS_RELEASED),
    ),
    variant(
        "a release leaves no word where nothing was granted, and the lock goes on",
        Broken::Revived,
        without(Flaw::ReleaseByGrant, LOSS_RELEASED),
    ),
];
