//! A developer's words: the one kind of text that must never reach a verifier.

use crate::answer::{self, DeveloperAsk, Reopen};
use std::fmt;

/// What a developer leaf wrote on its standard output.
///
/// The text is private; there is no Display, Deref, AsRef, Serialize or Clone, and Debug tells the length alone. Only the
/// developer's prompt reads it. Two things can be asked of it, and their answers go to the developer, the issue and the pull
/// request.
pub struct Rationale {
    text: String,
    ask: Option<DeveloperAsk>,
}

impl Rationale {
    /// Takes over the end of a developer's standard output; bytes that are not UTF-8 are replaced.
    pub fn from_output(bytes: Vec<u8>) -> Rationale {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let ask = answer::developer(&text);
        Rationale { text, ask }
    }

    /// The question for a person, if that is what the developer answered.
    pub fn needs_user(&self) -> Option<&str> {
        match &self.ask {
            Some(DeveloperAsk::NeedsUser(question)) => Some(question),
            _ => None,
        }
    }

    /// The old tests that rightly break, if that is what the developer answered; else none.
    pub fn reopen_red(&self) -> &[Reopen] {
        match &self.ask {
            Some(DeveloperAsk::ReopenRed(tests)) => tests,
            _ => &[],
        }
    }
}

impl fmt::Debug for Rationale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rationale({} bytes)", self.text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_debug_form_shows_no_word() {
        let rationale = Rationale::from_output(b"I hard-coded it.".to_vec());
        assert_eq!(
            format!("{rationale:?} {rationale:#?}"),
            "Rationale(16 bytes) Rationale(16 bytes)"
        );
    }

    #[test]
    fn two_questions_can_be_asked() {
        let plain = Rationale::from_output(b"done\xff".to_vec());
        assert_eq!((plain.needs_user(), plain.reopen_red()), (None, &[][..]));
        let asks = Rationale::from_output(b"Hm.\n{\"needs_user\":\"Euro or cent?\"}\n".to_vec());
        assert_eq!(asks.needs_user(), Some("Euro or cent?"));
        let reopens = Rationale::from_output(
            br#"x {"reopen_red":[{"test":"t::old","why":"limit is 5"}]}"#.to_vec(),
        );
        let old = Reopen {
            test: "t::old".into(),
            why: "limit is 5".into(),
        };
        assert_eq!(reopens.reopen_red(), [old]);
    }
}
