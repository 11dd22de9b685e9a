//! A call: one operation for some of the masters, and the sink that gets their answers.

use std::fmt::{self, Display, Write};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::answer::{Failure, Value};
use super::master_index::MasterIndex;
use super::script::Script;

/// Makes the words of an operation.
type MakeWords = dyn FnOnce() -> Words + Send;

/// One operation of a script, for some of the masters, which share it.
pub struct Call {
    /// The script to run. One message can carry many operations of a script; the reply is a list
    /// with an item for each.
    pub script: &'static Script,
    /// The operation's part of `KEYS` and of `ARGV`. They are made when they are needed first: in
    /// the common case only those of the hot script are.
    pub words: LazyLock<Words, Box<MakeWords>>,
    /// A shorter script that does the same in the common case, and its words. It is run first, and
    /// `script` where that replies [`NOT_HANDLED`].
    pub hot: Option<(&'static Script, Words)>,
    /// How long it may take, and what it is for.
    pub kind: CallKind,
    /// Gets the answers.
    pub sink: Arc<dyn ReplySink>,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { script, words, kind, .. } = self;
        let mut call = f.debug_struct("Call");
        call.field("script", &script.name()).field("words", words).field("kind", kind).finish_non_exhaustive()
    }
}

/// The reply of a hot script to an operation of which it left something, or all, to the full
/// script.
pub const NOT_HANDLED: Value = Value::Int(-1);

impl Call {
    /// A call without a hot script.
    pub fn new(script: &'static Script, words: Words, kind: CallKind, sink: Arc<dyn ReplySink>) -> Self {
        Self { script, words: LazyLock::new(Box::new(|| words)), hot: None, kind, sink }
    }

    /// The words of the operation for this script, which is one of its two.
    pub fn words_for(&self, script: &Script) -> &Words {
        match &self.hot {
            Some((hot, words)) if std::ptr::eq(*hot, script) => words,
            _ => &self.words,
        }
    }
}

/// The two ways of calling a master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// A vote. It counts if it is answered within the time-out. It fails at once if the master is
    /// known to be out of reach, and is not sent if it is not [wanted](ReplySink::is_wanted) any
    /// more.
    Vote {
        /// How long to wait for the answer, and for a connection that is being made.
        timeout: Duration,
    },
    /// A clean-up. It is sent to a silent master, too, behind the call that it undoes. If it is not
    /// answered within the time-out, its sink gets two answers: the time-out, and later the reply
    /// or the loss of the connection.
    CleanUp {
        /// After which the caller gets the time-out as the answer.
        timeout: Duration,
    },
}

impl CallKind {
    pub(crate) fn timeout(self) -> Duration {
        let (Self::Vote { timeout } | Self::CleanUp { timeout }) = self;
        timeout
    }

    pub(crate) fn is_clean_up(self) -> bool {
        matches!(self, Self::CleanUp { .. })
    }
}

/// The words of one operation: its keys first, then its arguments. They are kept in RESP, as they
/// are sent, because they are sent to several masters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// Each word as a text of RESP.
    packed: String,
    /// How many there are, and how many of them are keys.
    count: usize,
    keys: usize,
    /// Where the arguments begin.
    args_at: usize,
}

impl Words {
    /// No words yet; the first `keys` of them are keys.
    pub fn new(keys: usize) -> Self {
        Self { packed: String::with_capacity(384), count: 0, keys, args_at: 0 }
    }

    /// These words, and one more.
    pub fn with(mut self, word: impl Display) -> Self {
        let start = self.packed.len();
        write!(self.packed, "{word}").expect("a string takes any text");
        let length = self.packed.len() - start;
        self.packed.insert_str(start, "\r\n");
        self.packed.insert_str(start, itoa::Buffer::new().format(length));
        self.packed.insert(start, '$');
        self.end_word()
    }

    /// The same for a text.
    pub(crate) fn text(mut self, word: &str) -> Self {
        self.packed.push('$');
        self.packed.push_str(itoa::Buffer::new().format(word.len()));
        self.packed.push_str("\r\n");
        self.packed.push_str(word);
        self.end_word()
    }

    /// The same for a number.
    pub(crate) fn number(self, word: impl itoa::Integer) -> Self {
        self.text(itoa::Buffer::new().format(word))
    }

    fn end_word(mut self) -> Self {
        self.packed.push_str("\r\n");
        self.count += 1;
        if self.count == self.keys {
            self.args_at = self.packed.len();
        }
        self
    }

    /// The keys.
    pub fn keys(&self) -> WordIter<'_> {
        WordIter { packed: &self.packed, left: self.keys }
    }

    /// The arguments.
    ///
    /// # Panics
    ///
    /// When there are fewer words than were to be keys.
    pub fn args(&self) -> WordIter<'_> {
        assert!(self.count >= self.keys, "{} of {} keys", self.count, self.keys);
        WordIter { packed: self.packed_args(), left: self.count - self.keys }
    }

    /// The keys as they are sent.
    pub(crate) fn packed_keys(&self) -> &str {
        &self.packed[..self.args_at]
    }

    /// The arguments as they are sent.
    pub(crate) fn packed_args(&self) -> &str {
        &self.packed[self.args_at..]
    }
}

/// Some of the words of an operation.
#[derive(Clone, Debug)]
pub struct WordIter<'a> {
    packed: &'a str,
    left: usize,
}

impl<'a> Iterator for WordIter<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.left = self.left.checked_sub(1)?;
        let (length, rest) = self.packed[1..].split_once("\r\n")?;
        let (word, rest) = rest.split_at(length.parse().ok()?);
        self.packed = &rest[2..];
        Some(word)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for WordIter<'_> {}

/// Gets the answers of masters. It is called where they arrive, and must not block.
pub trait ReplySink: Send + Sync {
    /// Whether the call still has to be sent to the master with this index. This is called with a
    /// link locked, so it must neither wait nor call a master.
    fn is_wanted(&self, index: MasterIndex) -> bool;

    /// The answer of the master with this index, and its time (us since 1970): 0 if it did not
    /// look, `None` if it did not run the call, or does not know this connection any more. It may
    /// come before the call returns.
    fn receive(&self, index: MasterIndex, answer: Result<Value, Failure>, time: Option<u64>);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_packed_and_told() {
        let words = Words::new(2).text("{a}").with("").with("ключ\r\n").number(17).text("");
        assert_eq!(words.keys().collect::<Vec<_>>(), ["{a}", ""]);
        assert_eq!(words.args().collect::<Vec<_>>(), ["ключ\r\n", "17", ""]);
        assert_eq!(
            (words.packed_keys(), words.packed_args().lines().next()),
            ("$3\r\n{a}\r\n$0\r\n\r\n", Some("$10"))
        );
        assert_eq!(Words::new(0).args().len(), 0);
    }
}
