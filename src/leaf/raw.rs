//! Text of any bytes in JSON.

use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// A path, argument or variable of any bytes; in JSON a string where it is UTF-8, else a list of bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Repr", into = "Repr")]
pub(super) struct Raw(pub(super) OsString);

impl Raw {
    pub(super) fn new(text: impl AsRef<OsStr>) -> Raw {
        Raw(text.as_ref().to_owned())
    }

    pub(super) fn path(&self) -> &Path {
        Path::new(&self.0)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Repr {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<Repr> for Raw {
    fn from(repr: Repr) -> Raw {
        Raw(OsString::from_vec(match repr {
            Repr::Text(text) => text.into_bytes(),
            Repr::Bytes(bytes) => bytes,
        }))
    }
}

impl From<Raw> for Repr {
    fn from(raw: Raw) -> Repr {
        match raw.0.into_string() {
            Ok(text) => Repr::Text(text),
            Err(other) => Repr::Bytes(other.as_bytes().to_vec()),
        }
    }
}

/// Lists of paths of any bytes, for serde's `with`.
pub(super) mod paths {
    use super::Raw;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::path::PathBuf;

    pub(in crate::leaf) fn serialize<S: Serializer>(
        paths: &[PathBuf],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().map(Raw::new))
    }

    pub(in crate::leaf) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<PathBuf>, D::Error> {
        let raw = Vec::<Raw>::deserialize(from)?;
        Ok(raw.into_iter().map(|r| PathBuf::from(r.0)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_survive_json() {
        for bytes in [
            &b"plain"[..],
            b"",
            b"a b\n\"",
            b"\xff\xfe/x",
            "é".as_bytes(),
        ] {
            let raw = Raw(OsString::from_vec(bytes.to_vec()));
            let text = serde_json::to_string(&raw).unwrap();
            assert_eq!(serde_json::from_str::<Raw>(&text).unwrap(), raw, "{text}");
        }
        assert_eq!(serde_json::to_string(&Raw::new("x")).unwrap(), "\"x\"");
    }
}
