//! Lines out of what is read in pieces, in bounded memory.

/// The longest line that is read, in bytes: a tool's whole output can stand in one.
pub(in crate::leaf) const MAX_LINE: usize = 4 << 20;

/// Cuts what is read into lines, however it comes in pieces, and drops lines that are too long.
#[derive(Default)]
pub(in crate::leaf) struct Lines {
    part: Vec<u8>,
    dropping: bool,
}

impl Lines {
    pub(in crate::leaf) fn feed(&mut self, mut piece: &[u8], mut each: impl FnMut(&[u8])) {
        while let Some(end) = piece.iter().position(|b| *b == b'\n') {
            let (line, rest) = piece.split_at(end);
            self.take(line);
            if !self.dropping {
                each(&self.part);
            }
            self.forget();
            piece = rest.get(1..).unwrap_or_default();
        }
        self.take(piece);
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
        self.dropping = false;
    }

    /// What comes next is somewhere in a line.
    pub(in crate::leaf) fn lost(&mut self) {
        self.part.clear();
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
}
