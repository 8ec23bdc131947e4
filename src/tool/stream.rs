//! What one stream of a call has said: everything within a bound, or its beginning and its end.

use std::collections::VecDeque;
use std::io;

/// How much of each stream a call may write unless the caller says otherwise, in bytes: far above the longest list
/// of paths, and still a size that the conductor can hold.
const LARGEST: usize = 256 << 20;

/// What a stream has said so far: everything, or its beginning and its end.
pub(super) struct Stream {
    /// How much of the beginning, and as much of the end, is kept; None for everything.
    half: Option<usize>,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
}

impl Stream {
    pub(super) fn new(kept: Option<usize>) -> Stream {
        Stream {
            half: kept.map(|bytes| bytes / 2),
            head: Vec::new(),
            tail: VecDeque::new(),
            left_out: 0,
        }
    }

    pub(super) fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(half) = self.half else {
            if self.head.len() + bytes.len() > LARGEST {
                return Err(io::Error::other(format!(
                    "it wrote more than {} MiB, which is more than is held of a call's output",
                    LARGEST >> 20
                )));
            }
            self.head.extend_from_slice(bytes);
            return Ok(());
        };
        let (first, rest) = bytes.split_at(bytes.len().min(half - self.head.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(half);
        self.tail.drain(..excess);
        self.left_out += excess as u64;
        Ok(())
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        let mut bytes = self.head;
        if self.left_out > 0 {
            bytes.extend(format!("\n… {} bytes left out …\n", self.left_out).bytes());
        }
        bytes.extend(self.tail);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_that_must_be_whole_is_never_cut() {
        let mut stream = Stream::new(None);
        let piece = vec![0; LARGEST / 4];
        for _ in 0..4 {
            stream.take(&piece).unwrap();
        }
        let error = stream.take(b"x").unwrap_err();
        assert!(error.to_string().contains("more than 256 MiB"), "{error}");
    }

    #[test]
    fn what_fits_is_kept_as_it_is() {
        for length in [0, 9, 10, 11] {
            let mut stream = Stream::new(Some(10));
            let text: Vec<u8> = (0..length).collect();
            for byte in &text {
                stream.take(std::slice::from_ref(byte)).unwrap();
            }
            let kept = stream.into_bytes();
            assert_eq!(kept == text, length <= 10, "{kept:?}");
        }
    }
}
