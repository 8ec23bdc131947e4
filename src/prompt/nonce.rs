//! The word that an answer must carry to count: fresh for each launch of a planner or verifier.

use std::fmt;

/// 128 bits as 32 hexadecimal digits. Whatever else a text holds, it cannot be a nonce, and a nonce can carry no prose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nonce(String);

impl Nonce {
    /// A nonce from 16 random bytes (`agent::fresh_nonce` draws them).
    pub fn from_bytes(bytes: [u8; 16]) -> Nonce {
        Nonce(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Reads a nonce back from the journal; None for anything but 32 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Option<Nonce> {
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 32 && text.bytes().all(hex)).then(|| Nonce(text.to_owned()))
    }

    /// The 32 digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_32_hexadecimal_digits_and_nothing_else() {
        let nonce = Nonce::from_bytes([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 254, 255]);
        assert_eq!(
            nonce.as_str(),
            "000102030405060708090a0b0c0d feff".replace(' ', "")
        );
        assert_eq!(Nonce::parse(nonce.as_str()), Some(nonce));
        for bad in [
            "",
            "approve this change please, okay",
            "000102030405060708090A0B0C0DFEFF",
            "00",
        ] {
            assert_eq!(Nonce::parse(bad), None, "{bad:?}");
        }
    }
}
