//! Moments near the present time: fencing tokens, and until when entries keep others away.
//!
//! Two servers look at the clock one after the other. What is drawn here is far enough from every
//! limit that both decide alike, as long as they are asked within [`PATIENCE`].

use std::time::{Duration, SystemTime};

use crate::dice::Dice;

/// How long after it was drawn a request may be carried out.
pub(crate) const PATIENCE: Duration = Duration::from_millis(400);

/// How far ahead of the present tokens are proposed (us): by more than [`PATIENCE`], so that a wait
/// which ends at once has ended by them too, and by less than the half second that is refused.
const AHEAD: u64 = 430_000;

/// How far behind others are (us), for which nothing ends that began since: by less than the two
/// seconds that are refused, by more than [`PATIENCE`], and by more than a second, so that what is
/// left of a wait is seen to be a time.
const BEHIND: u64 = 1_400_000;

const HOUR: u64 = 3_600_000_000;

/// How long a quarantine lasts: so long that what is left of it, in milliseconds, is seen to be a
/// moment.
const FOR_EVER: u64 = 50 * 365 * 24 * HOUR;

/// Draws them.
#[derive(Default)]
pub(crate) struct Moments {
    now: u64,
    next: u64,
    /// Whether the servers were empty at the present moment.
    is_first: bool,
    /// The tokens that were proposed since the present moment, and are likely to have been granted
    /// as they are.
    recent: Vec<u64>,
}

impl Moments {
    /// This is the present moment for what is drawn from here on; whether nothing was granted
    /// before it.
    pub(crate) fn begin(&mut self, is_first: bool) {
        self.is_first = is_first;
        self.now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros().try_into().unwrap();
        self.next = self.next.max(self.now + AHEAD);
        self.recent.clear();
    }

    /// A token that a client proposes: one higher than all before, most of the time.
    pub(crate) fn proposal(&mut self, dice: &mut Dice) -> String {
        let proposal = match dice.below(100) {
            0..88 => {
                self.next += 1 + dice.below(20);
                self.recent.push(self.next);
                self.next
            }
            88..95 if self.is_first => self.now - BEHIND - dice.below(1000),
            88..95 => self.now + AHEAD - dice.below(1000), // lower than others
            // These are refused.
            95..97 => self.now - HOUR,
            97 => dice.below(3),
            _ => self.now + HOUR,
        };
        proposal.to_string()
    }

    /// The token of a grant that was made, it may be.
    pub(crate) fn token(&mut self, dice: &mut Dice) -> String {
        match dice.below(20) {
            0 => self.now.to_string(),
            1 => (self.now - HOUR).to_string(),
            2 => dice.one_of(&["0", "7", "9007199254740991"]).to_owned(),
            _ if self.recent.is_empty() => self.next.to_string(),
            _ => dice.one_of(&self.recent[self.recent.len().saturating_sub(9)..]).to_string(),
        }
    }

    /// What an entry may say: one that was over long since, or one that is not.
    pub(crate) fn entry(&mut self, dice: &mut Dice) -> String {
        let token = self.token(dice);
        let until = dice.one_of(&[self.now - HOUR, self.now + HOUR, 1]);
        let (round, holds) = (dice.one_of(&["3", "20", "21"]), dice.one_of(&["1", "1", "2", "0"]));
        match dice.below(30) {
            0 => dice.one_of(&["x", "1 2 3", "1 2 x 4", "-7 1 1 1", " 1 2 3 4", ""]).to_owned(),
            _ => format!("{until} {token} {round} {holds}"),
        }
    }

    /// From when on a master votes: long since, or not for long.
    pub(crate) fn votes_from(&self, votes: bool) -> String {
        if votes { self.now - HOUR } else { self.now + FOR_EVER }.to_string()
    }
}
