//! One direction of a connection: what goes in comes out in the same order, however long each piece
//! takes.

use std::collections::VecDeque;

use quorate_history::Time;

/// What is on its way.
#[derive(Debug)]
pub(crate) struct Pipe<T> {
    pieces: VecDeque<Piece<T>>,
    /// Nothing gets through.
    pub(crate) blocked: bool,
}

#[derive(Debug)]
struct Piece<T> {
    arrives: Time,
    what: T,
}

impl<T> Pipe<T> {
    pub(crate) fn new() -> Self {
        Self { pieces: VecDeque::new(), blocked: false }
    }

    /// Puts a piece in, which arrives then or later. Answers when to look.
    pub(crate) fn push(&mut self, arrives: Time, what: T) -> Time {
        let arrives = self.pieces.back().map_or(arrives, |last| last.arrives.max(arrives));
        self.pieces.push_back(Piece { arrives, what });
        arrives
    }

    /// Takes the first piece out, if it is there.
    pub(crate) fn pop(&mut self, now: Time) -> Option<T> {
        let first = self.pieces.front()?;
        if self.blocked || first.arrives > now {
            return None;
        }
        self.pieces.pop_front().map(|piece| piece.what)
    }

    /// Takes out everything that is on its way.
    pub(crate) fn empty(&mut self) -> impl Iterator<Item = T> {
        std::mem::take(&mut self.pieces).into_iter().map(|piece| piece.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(10);

    #[test]
    fn nothing_overtakes_and_nothing_is_early() {
        let mut pipe = Pipe::new();
        assert_eq!(pipe.push(NOW, 'a'), NOW);
        assert_eq!(pipe.push(NOW / 2, 'b'), NOW, "not before the first");
        assert_eq!(pipe.pop(NOW / 2), None);
        assert_eq!([pipe.pop(NOW), pipe.pop(NOW), pipe.pop(NOW)], [Some('a'), Some('b'), None]);
    }

    #[test]
    fn what_is_held_up_comes_later_or_is_lost() {
        let mut pipe = Pipe::new();
        pipe.push(NOW, 'a');
        pipe.push(NOW * 2, 'b');
        pipe.blocked = true;
        assert_eq!(pipe.pop(NOW * 3), None);
        pipe.blocked = false;
        assert_eq!(pipe.pop(NOW), Some('a'));
        assert_eq!(pipe.empty().collect::<String>(), "b");
        assert_eq!(pipe.pop(NOW * 3), None);
    }
}
