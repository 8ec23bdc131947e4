//! Names by content: SHA-256, written in lower-case hexadecimal.

use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::io::{self, Read};

/// The hash of some bytes.
pub fn of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The hash of parts, each preceded by its length, so that no two lists of parts look alike.
pub fn of_parts(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hex(&hash.finalize())
}

/// The hash of all that can be read, of any length.
///
/// # Errors
/// Those of the reader.
pub fn of_reader(reader: &mut dyn Read) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut block = vec![0; 64 << 10];
    loop {
        match reader.read(&mut block) {
            Ok(0) => return Ok(hex(&hash.finalize())),
            Ok(n) => hash.update(&block[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bytes_have_the_same_hash_however_they_come_and_parts_do_not_run_together() {
        // FIPS 180-2, appendix B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(of(b"abc"), abc);
        assert_eq!(of_reader(&mut &b"abc"[..]).unwrap(), abc);
        let long = vec![7; 200_000];
        assert_eq!(of_reader(&mut &long[..]).unwrap(), of(&long));
        assert_ne!(of_parts(&[b"ab", b"c"]), of_parts(&[b"a", b"bc"]));
    }
}
