//! The templates of all prompts: the program's own, overridden file by file by a repository's `.veri/templates/`.

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The largest template that is accepted, in bytes (the program's own are under 4 KiB).
pub const TEMPLATE_BYTES: usize = 64 * 1024;

/// The largest prompt that is rendered, in bytes: an issue of 1 MiB and a ledger fit several times.
const PROMPT_BYTES: usize = 16 * 1024 * 1024;

struct Known {
    name: &'static str,
    text: &'static str,
    /// What the template must use, or the prompt could not work.
    must: &'static [&'static str],
    /// What it may use besides.
    may: &'static [&'static str],
}

macro_rules! known {
    ($($name:literal: $must:expr, $may:expr;)*) => {
        &[$(Known {
            name: $name,
            text: include_str!(concat!("../../templates/", $name)),
            must: $must,
            may: $may,
        },)*]
    };
}

const VERIFY: &[&str] = &["data_rule", "behaviour", "verdict_form"];
const VERIFY_MAY: &[&str] = &["test_change", "listed", "suite_log", "base_commit"];
const DEVELOP: &[&str] = &["data_rule", "step", "issue", "test_command", "revise"];
const DEVELOP_MAY: &[&str] = &["ledger", "checks", "reopened"];

const KNOWN: &[Known] = known! {
    "rules-data.md": &["tag"], &[];
    "answer-verdict.md": &["nonce"], &[];
    "plan.md": &["nonce", "data_rule", "issue", "previous_error"],
        &["max_steps", "no_test_forbidden", "test_command", "schema"];
    "develop-red.md": DEVELOP, DEVELOP_MAY;
    "develop-green.md": DEVELOP, DEVELOP_MAY;
    "develop-refactor.md": DEVELOP, DEVELOP_MAY;
    "develop-no-test.md": DEVELOP, DEVELOP_MAY;
    "revise.md": &["why", "evidence", "reasons"], &["attempt", "start", "cut_short", "kept"];
    "verify-red.md": VERIFY, VERIFY_MAY;
    "verify-already-there.md": VERIFY, VERIFY_MAY;
    "verify-green.md": VERIFY, VERIFY_MAY;
    "verify-refactor.md": VERIFY, VERIFY_MAY;
    "verify-no-test.md": VERIFY, VERIFY_MAY;
};

/// Why a set of templates cannot be used, or a prompt not rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A file whose name is none of the templates.
    #[error("template `{name}` is not one that veri knows; known are {known}; rename or remove it")]
    Unknown {
        /// The file's name.
        name: String,
        /// The names that are known, with commas between.
        known: String,
    },
    /// A stored set that lacks a template.
    #[error(
        "the stored templates lack `{0}`: another version of veri made them; --new-templates takes this version's"
    )]
    Missing(&'static str),
    /// A template that cannot be read, compiled or rendered.
    #[error("template `{name}` cannot be used: {why}")]
    Broken {
        /// The file's name.
        name: String,
        /// What is wrong with it.
        why: String,
    },
}

/// A whole set of templates, each known to render.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Templates {
    set: BTreeMap<&'static str, String>,
}

impl Templates {
    /// The program's own.
    pub fn bundled() -> Templates {
        let set = KNOWN
            .iter()
            .map(|known| (known.name, known.text.to_owned()))
            .collect();
        Templates { set }
    }

    /// This set with some files replaced: names without folder, and their bytes.
    ///
    /// # Errors
    /// A name that is not known, or a file that is not a usable template, is an error that names it: a misspelt override
    /// must not silently be none.
    pub fn overlay<N: AsRef<str>, B: AsRef<[u8]>>(
        mut self,
        files: impl IntoIterator<Item = (N, B)>,
    ) -> Result<Templates, TemplateError> {
        for (name, bytes) in files {
            let (known, text) = read(name.as_ref(), bytes.as_ref())?;
            self.set.insert(known.name, text);
        }
        Ok(self)
    }

    /// The set stored at the first start of a run: it must be whole.
    ///
    /// # Errors
    /// As `overlay`, and when a template is missing.
    pub fn from_files<N: AsRef<str>, B: AsRef<[u8]>>(
        files: impl IntoIterator<Item = (N, B)>,
    ) -> Result<Templates, TemplateError> {
        let templates = Templates {
            set: BTreeMap::new(),
        }
        .overlay(files)?;
        match KNOWN
            .iter()
            .find(|known| !templates.set.contains_key(known.name))
        {
            Some(known) => Err(TemplateError::Missing(known.name)),
            None => Ok(templates),
        }
    }

    /// The files to store: name and text, in the order of their names.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.set.iter().map(|(name, text)| (*name, text.as_str()))
    }

    /// Fills in one template; the text ends without a newline.
    ///
    /// # Errors
    /// When it fails to render or the prompt would be larger than 16 MiB.
    pub(crate) fn render(
        &self,
        name: &'static str,
        values: impl IntoIterator<Item = (&'static str, Value)>,
    ) -> Result<String, TemplateError> {
        let text = self.set.get(name).ok_or(TemplateError::Missing(name))?;
        let filled = fill(name, text, Value::from_pairs(values));
        filled
            .map(|text| text.trim_end().to_owned())
            .map_err(|why| broken(name, why))
    }
}

fn broken(name: &str, why: String) -> TemplateError {
    TemplateError::Broken {
        name: name.to_owned(),
        why,
    }
}

/// Reads one override and shows that it works: it compiles, uses nothing unknown, leaves nothing needed out, and renders.
fn read(name: &str, bytes: &[u8]) -> Result<(&'static Known, String), TemplateError> {
    let Some(known) = KNOWN.iter().find(|known| known.name == name) else {
        let names: Vec<&str> = KNOWN.iter().map(|known| known.name).collect();
        return Err(TemplateError::Unknown {
            name: super::escaped_line(name),
            known: names.join(", "),
        });
    };
    let fail = |why: String| broken(name, why);
    if bytes.len() > TEMPLATE_BYTES {
        return Err(fail(format!(
            "it has {} bytes, more than {TEMPLATE_BYTES}",
            bytes.len()
        )));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        fail(format!(
            "it is not UTF-8 from byte {} on",
            error.valid_up_to()
        ))
    })?;
    let env = environment();
    let template = env
        .template_from_named_str(name, text)
        .map_err(|error| fail(explain(&error)))?;
    let used = template.undeclared_variables(false);
    let mut unknown: Vec<&String> = used
        .iter()
        .filter(|used| !known.must.iter().chain(known.may).any(|name| name == used))
        .collect();
    unknown.sort();
    if let Some(unknown) = unknown.first() {
        let names: Vec<&str> = known.must.iter().chain(known.may).copied().collect();
        return Err(fail(format!(
            "it uses `{unknown}`; it may use {}",
            names.join(", ")
        )));
    }
    if let Some(left_out) = known.must.iter().find(|must| !used.contains(**must)) {
        return Err(fail(format!(
            "it leaves out {{{{ {left_out} }}}}, without which the prompt cannot work"
        )));
    }
    for sample in ["x", ""] {
        let values = known
            .must
            .iter()
            .chain(known.may)
            .map(|name| (*name, Value::from(sample)));
        fill(name, text, Value::from_pairs(values)).map_err(fail)?;
    }
    Ok((known, text.to_owned()))
}

fn fill(name: &str, text: &str, values: Value) -> Result<String, String> {
    let env = environment();
    let template = env
        .template_from_named_str(name, text)
        .map_err(|error| explain(&error))?;
    let mut out = Capped { bytes: Vec::new() };
    template
        .render_captured_to(values, &mut out)
        .map_err(|error| explain(&error))?;
    String::from_utf8(out.bytes).map_err(|error| error.to_string())
}

/// The engine without filters, functions, other templates or a loader: names, conditions and loops are all there is.
fn environment<'a>() -> Environment<'a> {
    let mut env = Environment::empty();
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env.set_recursion_limit(50);
    if let Ok(syntax) = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()
    {
        env.set_syntax(syntax);
    }
    env
}

fn explain(error: &minijinja::Error) -> String {
    let mut why = error.kind().to_string();
    if let Some(detail) = error.detail() {
        why = format!("{why}: {detail}");
    }
    if let Some(source) = std::error::Error::source(error) {
        why = format!("{why}: {source}");
    }
    match error.line() {
        Some(line) => format!("{why} (line {line})"),
        None => why,
    }
}

/// Output up to the limit, then an error.
struct Capped {
    bytes: Vec<u8>,
}

impl Write for Capped {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + more.len() > PROMPT_BYTES {
            let why = format!("the prompt would be larger than {} MiB", PROMPT_BYTES >> 20);
            return Err(io::Error::other(why));
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlay(name: &str, text: &str) -> String {
        match Templates::bundled().overlay([(name, text.as_bytes())]) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn the_bundled_templates_are_usable_and_can_be_stored() {
        let bundled = Templates::bundled();
        let stored: Vec<(String, Vec<u8>)> = bundled
            .files()
            .map(|(name, text)| (name.to_owned(), text.into()))
            .collect();
        assert_eq!(stored.len(), KNOWN.len());
        assert_eq!(Templates::from_files(stored), Ok(bundled));
    }

    #[test]
    fn one_file_overrides_one_template() {
        let own = "{{ data_rule }}{{ behaviour }}{{ verdict_form }}";
        let set = Templates::bundled()
            .overlay([("verify-red.md", own)])
            .unwrap();
        let changed: Vec<&str> = set
            .files()
            .zip(Templates::bundled().files())
            .filter(|(ours, theirs)| ours != theirs)
            .map(|((name, _), _)| name)
            .collect();
        assert_eq!(changed, ["verify-red.md"]);
    }

    #[test]
    fn a_stored_set_with_a_template_missing_is_refused() {
        let files: Vec<(String, String)> = Templates::bundled()
            .files()
            .filter(|(name, _)| *name != "plan.md")
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .collect();
        assert_eq!(
            Templates::from_files(files),
            Err(TemplateError::Missing("plan.md"))
        );
    }

    #[test]
    fn every_broken_override_is_named_with_its_fault() {
        for (name, text, part) in [
            (
                "verify_red.md",
                "",
                "not one that veri knows; known are rules-data.md,",
            ),
            ("../plan.md", "", "not one that veri knows"),
            (
                "rules-data.md",
                "{{ tag",
                "`rules-data.md` cannot be used: syntax error",
            ),
            (
                "rules-data.md",
                "{{ tag }}{{ nonce }}",
                "it uses `nonce`; it may use tag",
            ),
            ("answer-verdict.md", "Answer.", "leaves out {{ nonce }}"),
            (
                "rules-data.md",
                "{{ tag }}{% include 'plan.md' %}",
                "cannot be used: syntax error",
            ),
            ("rules-data.md", "{{ tag|shell }}", "unknown filter"),
            (
                "rules-data.md",
                "{{ tag }}{{ tag.password }}",
                "cannot be used",
            ),
        ] {
            let error = overlay(name, text);
            assert!(error.contains(part), "{name} {text:?} gave {error:?}");
        }
        let error = Templates::bundled()
            .overlay([("plan.md", b"\xff")])
            .unwrap_err();
        assert!(
            error.to_string().contains("not UTF-8 from byte 0 on"),
            "{error}"
        );
        let big = vec![b'x'; TEMPLATE_BYTES + 1];
        let error = Templates::bundled()
            .overlay([("plan.md", big)])
            .unwrap_err();
        assert!(error.to_string().contains("more than 65536"), "{error}");
    }

    #[test]
    fn values_are_never_read_as_template_code() {
        let set = Templates::bundled();
        let text = set
            .render(
                "rules-data.md",
                [("tag", Value::from("{{ secret }}{% if x %}<&>"))],
            )
            .unwrap();
        assert!(text.contains("<{{ secret }}{% if x %}<&> …>"), "{text}");
    }

    #[test]
    fn a_prompt_beyond_the_limit_is_an_error_and_not_a_full_memory() {
        let huge = "x".repeat(PROMPT_BYTES + 1);
        let error = Templates::bundled().render("rules-data.md", [("tag", Value::from(huge))]);
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("larger than 16 MiB")
        );
    }
}
