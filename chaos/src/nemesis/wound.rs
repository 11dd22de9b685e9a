//! What a fault has done, until it is healed.

use std::fmt;

use crate::arena::Arena;

/// What a fault has done, and how it is undone.
#[must_use = "what is not healed stays"]
pub struct Wound(Option<Heal>);

/// Its callback gets each master that is healed before the others.
type Heal = Box<dyn FnOnce(&mut Arena, &mut dyn FnMut(usize)) + Send>;

impl Wound {
    pub(super) fn new(heal: impl FnOnce(&mut Arena) + Send + 'static) -> Self {
        Self(Some(Box::new(|arena, _| heal(arena))))
    }

    /// What was over at once.
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// Each of these masters is healed so.
    pub(super) fn of_each(masters: &[usize], heal: impl Fn(&mut Arena, usize) + Send + 'static) -> Self {
        let masters = masters.to_vec();
        Self(Some(Box::new(move |arena, healed| {
            for master in &masters {
                heal(arena, *master);
                if masters.len() > 1 {
                    healed(*master);
                }
            }
        })))
    }

    /// Heals it: what it struck works again. What was lost stays lost.
    ///
    /// # Panics
    ///
    /// When a master that has to answer does not, or does not start.
    pub fn heal(self, arena: &mut Arena) {
        self.heal_each(arena, |_| {});
    }

    /// The same. Where several masters are healed one by one, it tells when each is.
    ///
    /// # Panics
    ///
    /// As [`heal`](Self::heal).
    pub fn heal_each(self, arena: &mut Arena, mut healed: impl FnMut(usize)) {
        if let Some(heal) = self.0 {
            heal(arena, &mut healed);
        }
    }
}

impl fmt::Debug for Wound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Wound" } else { "Wound (over)" })
    }
}
