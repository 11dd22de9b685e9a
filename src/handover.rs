//! A lock on its way from one process to another.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use sha1_smol::Sha1;
use uuid::Uuid;

use crate::invalid::Invalid;
use crate::owner::Owner;
use crate::wire::{Kind, Permit};

/// What the text begins with.
const FORM: &str = "quorate2";

/// A lock that one process has handed over and no other has adopted yet:
/// [`Guard::hand_over`](crate::Guard::hand_over) makes it, and [`Lock::adopt`](crate::Lock::adopt)
/// turns it into a guard, once.
///
/// Its text, by `Display` and `FromStr`, is one word of letters, digits, dots, dashes and percent
/// signs: the lock's kind and name, a secret, a fingerprint of the masters, and the permit of a
/// semaphore. Its bearer can take the lock. Neither `Debug` nor an error shows the secret, and it
/// does not follow from the owner that others are shown meanwhile.
#[derive(Clone, PartialEq, Eq)]
pub struct Handover {
    pub(crate) kind: Kind,
    pub(crate) name: Arc<str>,
    pub(crate) secret: Uuid,
    /// The masters that the lock is on.
    pub(crate) masters: String,
    /// The permit, of a semaphore.
    pub(crate) permit: Option<Permit>,
}

impl Handover {
    /// The lock's name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The lock's owner meanwhile, who is nobody: masters and everybody who asks them see it, and
    /// the secret cannot be computed from it.
    pub(crate) fn owner(&self) -> Owner {
        let [unique @ .., _, _, _, _] = Sha1::from(self.secret.as_bytes()).digest().bytes();
        Owner::of_nobody(Uuid::from_bytes(unique))
    }

    /// Checks that it is for these masters.
    pub(crate) fn check(&self, masters: &str) -> Result<(), Invalid> {
        if self.masters != masters {
            return Err(self.invalid("it is for other masters than this client's, or for another key prefix"));
        }
        Ok(())
    }

    pub(crate) fn invalid(&self, why: &str) -> Invalid {
        Invalid::handover(&self.name, why)
    }
}

impl fmt::Debug for Handover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, permit, .. } = self;
        let mut shown = f.debug_struct("Handover");
        shown.field("kind", kind).field("name", name).field("permit", permit).finish_non_exhaustive()
    }
}

impl fmt::Display for Handover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = utf8_percent_encode(&self.name, NON_ALPHANUMERIC);
        let kind = self.kind.word();
        write!(f, "{FORM}.{kind}.{}.{}.{name}", self.masters, self.secret.hyphenated())?;
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
        let parse = || {
            let mut parts = text.splitn(6, '.');
            let mut next = || parts.next();
            (next()? == FORM).then_some(())?;
            let kind = Kind::of_word(next()?)?;
            let masters = next()?.to_owned();
            let secret = Uuid::try_parse(next()?).ok()?;
            let name = percent_decode_str(next()?).decode_utf8().ok()?;
            let permit = match next() {
                Some(permit) => {
                    let (number, of) = permit.split_once('-')?;
                    Some(Permit { number: number.parse().ok()?, of: of.parse().ok()? })
                }
                None => None,
            };
            let handover = Self { kind, name: (*name).into(), secret, masters, permit };
            (handover.to_string() == text).then_some(handover)
        };
        parse().ok_or_else(|| Invalid::no_handover(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: Uuid = Uuid::from_u128(0x1111_2222_3333_4444_5555_6666_7777_8888);

    fn handover(name: &str) -> Handover {
        let masters = "0123456789abcdef".to_owned();
        Handover { kind: Kind::Lock, name: name.into(), secret: SECRET, masters, permit: None }
    }

    #[test]
    fn a_hand_over_reads_back_what_it_wrote_whatever_the_name() {
        for name in ["invoice:42", "a.b/c d\n", "ключ%41", "."] {
            let text = handover(name).to_string();
            assert!(text.chars().all(|c| c.is_ascii_alphanumeric() || ".-%".contains(c)), "{text}");
            assert_eq!(text.parse::<Handover>().unwrap(), handover(name));
            let of_permit = Handover { permit: Some(Permit { number: 2, of: 5 }), ..handover(name) };
            assert_eq!(of_permit.to_string().parse::<Handover>().unwrap(), of_permit);
        }
    }

    #[test]
    fn what_is_not_a_hand_over_is_refused_and_named() {
        let good = handover("l").to_string();
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
        assert!(handover("l").check("0123456789abcdef").is_ok());
        assert!(handover("l").check("fedcba9876543210").is_err());
    }

    #[test]
    fn nothing_that_is_shown_has_the_secret() {
        let handover = handover("l");
        let text = handover.to_string();
        let shown = [
            format!("{handover:?}"),
            handover.owner().to_string(),
            handover.invalid("x").to_string(),
            text[..text.len() - 2].parse::<Handover>().unwrap_err().to_string(),
        ];
        for shown in shown {
            let has = |part: &str| shown.contains(part);
            assert!(!SECRET.hyphenated().to_string().split('-').any(has), "{shown}");
        }
        assert_eq!(handover.owner(), text.parse::<Handover>().unwrap().owner());
    }
}
