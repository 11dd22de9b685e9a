//! A lock on its way from one process to another.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use uuid::Uuid;

use crate::invalid::Invalid;
use crate::owner::Owner;
use crate::protocol::{Kind, Permit};

/// What the text begins with.
const FORM: &str = "quorate2";

/// A lock that one process has handed over and no other has adopted yet:
/// [`Guard::hand_over`](crate::Guard::hand_over) makes it, and [`Lock::adopt`](crate::Lock::adopt)
/// turns it into a guard, once.
///
/// Its text, by `Display` and `FromStr`, is one word of letters, digits, dots, dashes and percent
/// signs: the lock's kind and name, its owner meanwhile, a fingerprint of the masters, and the
/// permit of a semaphore. Treat it as a secret: its bearer can take the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handover {
    kind: Kind,
    name: Arc<str>,
    owner: Owner,
    /// The masters that the lock is on.
    masters: String,
    /// The permit, of a semaphore.
    permit: Option<Permit>,
}

impl Handover {
    pub(crate) fn new(
        kind: Kind,
        name: Arc<str>,
        owner: Owner,
        masters: String,
        permit: Option<Permit>,
    ) -> Self {
        Self { kind, name, owner, masters, permit }
    }

    /// The lock's name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn permit(&self) -> Option<Permit> {
        self.permit
    }

    /// Checks that it is for these masters.
    pub(crate) fn check(&self, masters: &str) -> Result<(), Invalid> {
        if self.masters != masters {
            return Err(self.invalid("it is for other masters than this client's, or for another key prefix"));
        }
        Ok(())
    }

    pub(crate) fn invalid(&self, why: &str) -> Invalid {
        Invalid::handover(&self.to_string(), why)
    }
}

impl fmt::Display for Handover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = utf8_percent_encode(&self.name, NON_ALPHANUMERIC);
        let client = self.owner.client();
        let number = self.owner.number();
        let kind = self.kind.word();
        write!(f, "{FORM}.{kind}.{}.{}.{number}.{name}", self.masters, client.hyphenated())?;
        match self.permit {
            Some(Permit { number, of }) => write!(f, ".{number}-{of}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Handover {
    type Err = Invalid;

    /// Reads what [`Display`](fmt::Display) wrote, and nothing else.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let invalid = |why: &str| Invalid::handover(text, why);
        let parse = || {
            let mut parts = text.splitn(7, '.');
            let mut next = || parts.next();
            (next()? == FORM).then_some(())?;
            let kind = Kind::of_word(next()?)?;
            let masters = next()?.to_owned();
            let owner = Owner::new(Uuid::try_parse(next()?).ok()?, next()?.parse().ok()?);
            let name = percent_decode_str(next()?).decode_utf8().ok()?;
            let permit = match next() {
                Some(permit) => {
                    let (number, of) = permit.split_once('-')?;
                    Some(Permit { number: number.parse().ok()?, of: of.parse().ok()? })
                }
                None => None,
            };
            let handover = Self { kind, name: (*name).into(), owner, masters, permit };
            (handover.to_string() == text).then_some(handover)
        };
        let handover =
            parse().ok_or_else(|| invalid("it is not a hand-over, or was cut short or changed"))?;
        if !handover.owner.is_nobody() {
            return Err(invalid("it names the owner of a guard, which has not been handed over"));
        }
        Ok(handover)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handover(name: &str, number: u64) -> Handover {
        let owner = Owner::new(Uuid::from_u128(7), number);
        Handover::new(Kind::Lock, name.into(), owner, "0123456789abcdef".to_owned(), None)
    }

    #[test]
    fn a_hand_over_reads_back_what_it_wrote_whatever_the_name() {
        for name in ["invoice:42", "a.b/c d\n", "ключ%41", "."] {
            let text = handover(name, 0).to_string();
            assert!(text.chars().all(|c| c.is_ascii_alphanumeric() || ".-%".contains(c)), "{text}");
            assert_eq!(text.parse::<Handover>().unwrap(), handover(name, 0));
            let of_permit = Handover { permit: Some(Permit { number: 2, of: 5 }), ..handover(name, 0) };
            assert_eq!(of_permit.to_string().parse::<Handover>().unwrap(), of_permit);
        }
    }

    #[test]
    fn what_is_not_a_hand_over_is_refused_and_named() {
        let good = handover("l", 0).to_string();
        for text in [
            "",
            "x",
            &good[1..],
            &good.replace("quorate2", "quorate3"),
            &good.replace(".l", "."),
            &good.replace(".l", ".%zz"),
            &good.replace(".l", ".l.2"),
            &good.replace(".l", ".l.2-+5"),
        ] {
            if let Ok(handover) = text.parse::<Handover>() {
                assert!(handover.name().is_empty(), "{text:?} was read as {handover:?}"); // an empty name is refused later
                continue;
            }
            let error = text.parse::<Handover>().unwrap_err();
            assert!(error.to_string().contains("not a hand-over"), "{error}");
        }
        let error = handover("l", 3).to_string().parse::<Handover>().unwrap_err();
        assert!(error.to_string().contains("has not been handed over"), "{error}");
        assert!(handover("l", 0).check("0123456789abcdef").is_ok());
        assert!(handover("l", 0).check("fedcba9876543210").is_err());
    }
}
