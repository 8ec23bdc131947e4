//! Lines out of what is read in pieces, in bounded memory.

/// The longest line that is read, in bytes: a tool's whole output can stand in one.
pub(in crate::leaf) const MAX_LINE: usize = 4 << 20;

/// Cuts what is read into lines, however it comes in pieces, and drops lines that are too long.
#[derive(Default)]
pub(in crate::leaf) struct Lines {
    part: Vec<u8>,
    dropping: bool,
    /// How much of the part was tried as a line, and whether it was one.
    tried: usize,
    taken: bool,
}

impl Lines {
    pub(in crate::leaf) fn feed(&mut self, mut piece: &[u8], mut each: impl FnMut(&[u8])) {
        while let Some(end) = piece.iter().position(|b| *b == b'\n') {
            let (line, rest) = piece.split_at(end);
            self.take(line);
            if !self.dropping && !self.taken {
                each(&self.part);
            }
            self.forget();
            piece = rest.get(1..).unwrap_or_default();
        }
        self.take(piece);
    }

    /// For a moment in which nothing more comes: what stands after the last line break may be a line that is never ended.
    /// `is_one` says whether it was; then it is not given again when a break comes after all.
    pub(in crate::leaf) fn rest(&mut self, is_one: impl FnOnce(&[u8]) -> bool) {
        if !self.dropping && !self.taken && self.part.len() > self.tried {
            self.tried = self.part.len();
            self.taken = is_one(&self.part);
        }
    }

    fn take(&mut self, piece: &[u8]) {
        self.dropping |= self.part.len() + piece.len() > MAX_LINE;
        if self.dropping {
            self.part = Vec::new();
        } else {
            self.part.extend_from_slice(piece);
        }
    }

    /// What comes next is the start of a line.
    fn forget(&mut self) {
        self.part.clear();
        (self.dropping, self.taken, self.tried) = (false, false, 0);
    }

    /// What comes next is somewhere in a line.
    pub(in crate::leaf) fn lost(&mut self) {
        self.forget();
        self.dropping = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_does_not_grow_with_what_is_read() {
        let mut lines = Lines::default();
        for _ in 0..20 {
            lines.feed(&vec![b'x'; MAX_LINE / 4], |_| panic!("no line"));
            assert!(lines.part.capacity() <= 2 * MAX_LINE);
        }
        lines.lost();
        let mut got = Vec::new();
        lines.feed(b"tail of a line\n{\"a\":1}\n", |line| {
            got.push(line.to_vec())
        });
        assert_eq!(got, [b"{\"a\":1}"]);
    }
    #[test]
    fn a_line_that_is_never_ended_is_given_once_and_only_when_it_is_one() {
        let mut lines = Lines::default();
        lines.feed(b"one\ntw", |_| ());
        lines.rest(|line| {
            assert_eq!(line, b"tw");
            false
        });
        lines.rest(|_| panic!("nothing has come since"));
        lines.feed(b"o", |_| panic!("no line"));
        lines.rest(|line| line == b"two");
        lines.rest(|_| panic!("it was given"));
        let mut got = Vec::new();
        lines.feed(b"\nthree\n", |line| got.push(line.to_vec()));
        assert_eq!(got, [b"three"]);
    }
}
