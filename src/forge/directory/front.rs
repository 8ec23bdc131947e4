//! Front matter: `key: value` lines between two `---`, then the body. A small part of YAML, strict
//! where it matters: a value is plain to the end of its line (`#` included), 'quoted' or "quoted"; a
//! list is `[a, b]` or lines of `- a`. Lines of keys that nobody asks for are kept as they are.

/// What is wrong with a file's front matter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub(super) struct FrontError {
    pub line: usize,
    pub message: String,
}

/// A file in its two parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Document {
    entries: Vec<Entry>,
    pub body: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    line: usize,
    /// None for comments and blank lines.
    key: Option<String>,
    value: String,
    /// Indented or `- ` lines that belong to the key.
    more: Vec<String>,
}

impl Document {
    /// A file that is all body so far.
    pub fn of_body(body: impl Into<String>) -> Document {
        Document {
            entries: vec![],
            body: body.into(),
        }
    }

    /// Reads a text; None when it has no front matter.
    pub fn parse(text: &str) -> Result<Option<Document>, FrontError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let mut lines = text.split_inclusive('\n');
        let first = lines.next().unwrap_or_default();
        if first.trim_end() != "---" {
            return Ok(None);
        }
        let mut read = first.len();
        let mut document = Document::default();
        for (index, raw) in lines.enumerate() {
            let line = index + 2;
            read += raw.len();
            let raw = raw.trim_end();
            if raw == "---" || raw == "..." {
                let body = &text[read..];
                let body = body.strip_prefix('\n').unwrap_or(body);
                document.body = body.strip_suffix('\n').unwrap_or(body).to_owned();
                return Ok(Some(document));
            }
            document.take_line(line, raw)?;
        }
        Err(FrontError {
            line: 1,
            message: "the front matter that begins here has no closing `---`".to_owned(),
        })
    }

    fn take_line(&mut self, line: usize, raw: &str) -> Result<(), FrontError> {
        let error = |message: String| Err(FrontError { line, message });
        if raw.is_empty() || raw.starts_with('#') {
            self.entries.push(Entry {
                line,
                key: None,
                value: raw.to_owned(),
                more: vec![],
            });
            return Ok(());
        }
        if raw.starts_with([' ', '\t']) || raw.starts_with("- ") || raw == "-" {
            return match self.entries.iter_mut().rev().find(|e| e.key.is_some()) {
                Some(entry) => {
                    entry.more.push(raw.to_owned());
                    Ok(())
                }
                None => error("an indented line belongs to no key".to_owned()),
            };
        }
        let Some((key, value)) = raw.split_once(':') else {
            return error("expected `key: value`".to_owned());
        };
        let key = key.trim_end();
        if key.is_empty() || key.contains(char::is_whitespace) {
            return error("expected `key: value`, with a key of one word".to_owned());
        }
        if self.entry(key).is_some() {
            return error(format!("`{key}` stands here a second time"));
        }
        self.entries.push(Entry {
            line,
            key: Some(key.to_owned()),
            value: value.trim().to_owned(),
            more: vec![],
        });
        Ok(())
    }

    fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.key.as_deref() == Some(key))
    }

    /// The line that a key stands on; 1 when it does not.
    pub fn line_of(&self, key: &str) -> usize {
        self.entry(key).map_or(1, |entry| entry.line)
    }

    /// A key's text; None when the key is missing or its value blank.
    pub fn text(&self, key: &str) -> Result<Option<String>, FrontError> {
        let Some(entry) = self.entry(key) else {
            return Ok(None);
        };
        if !entry.more.is_empty() {
            return Err(FrontError {
                line: entry.line + 1,
                message: format!("`{key}` must be one line"),
            });
        }
        let text = scalar(&entry.value, entry.line)?;
        Ok((!text.trim().is_empty()).then_some(text))
    }

    /// A key's yes or no.
    pub fn flag(&self, key: &str) -> Result<Option<bool>, FrontError> {
        match self.text(key)?.as_deref() {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(other) => Err(FrontError {
                line: self.line_of(key),
                message: format!("`{key}` must be true or false, not `{other}`"),
            }),
        }
    }

    /// A key's list; one value without brackets is a list of one.
    pub fn list(&self, key: &str) -> Result<Vec<String>, FrontError> {
        let Some(entry) = self.entry(key) else {
            return Ok(vec![]);
        };
        if entry.value.is_empty() {
            let item = |(index, raw): (usize, &String)| {
                let line = entry.line + 1 + index;
                match raw.trim_start().strip_prefix('-') {
                    Some(value) => scalar(value.trim(), line),
                    None => Err(FrontError {
                        line,
                        message: format!("expected `- value` in the list `{key}`"),
                    }),
                }
            };
            return entry.more.iter().enumerate().map(item).collect();
        }
        match entry.value.strip_prefix('[') {
            None => Ok(self.text(key)?.into_iter().collect()),
            Some(rest) => {
                let Some(inner) = rest.strip_suffix(']') else {
                    return Err(FrontError {
                        line: entry.line,
                        message: format!("the list `{key}` has no closing `]`"),
                    });
                };
                split_list(inner)
                    .into_iter()
                    .map(|item| scalar(item.trim(), entry.line))
                    .filter(|item| !matches!(item, Ok(text) if text.is_empty()))
                    .collect()
            }
        }
    }

    /// Sets a key to a text, in its old place or at the end.
    pub fn set(&mut self, key: &str, text: &str) {
        let value = quoted(text);
        match self
            .entries
            .iter_mut()
            .find(|e| e.key.as_deref() == Some(key))
        {
            Some(entry) => {
                entry.value = value;
                entry.more.clear();
            }
            None => self.entries.push(Entry {
                line: 0,
                key: Some(key.to_owned()),
                value,
                more: vec![],
            }),
        }
    }

    /// The whole file; parsing it gives the same document.
    pub fn render(&self) -> String {
        let mut out = String::from("---\n");
        for entry in &self.entries {
            match &entry.key {
                None => out.push_str(&entry.value),
                Some(key) => {
                    out.push_str(key);
                    out.push(':');
                    if !entry.value.is_empty() {
                        out.push(' ');
                        out.push_str(&entry.value);
                    }
                }
            }
            out.push('\n');
            for more in &entry.more {
                out.push_str(more);
                out.push('\n');
            }
        }
        out.push_str("---\n\n");
        out.push_str(&self.body);
        out.push('\n');
        out
    }
}

fn scalar(value: &str, line: usize) -> Result<String, FrontError> {
    if value.starts_with('"') {
        return serde_json::from_str(value).map_err(|_| FrontError {
            line,
            message: format!("{value} is not a \"quoted\" text that ends on its line"),
        });
    }
    if let Some(rest) = value.strip_prefix('\'') {
        return match rest.strip_suffix('\'') {
            Some(inner) if !inner.replace("''", "").contains('\'') => Ok(inner.replace("''", "'")),
            _ => Err(FrontError {
                line,
                message: format!("{value} is not a 'quoted' text that ends on its line"),
            }),
        };
    }
    if matches!(value, "|" | ">" | "|-" | ">-") {
        return Err(FrontError {
            line,
            message: "texts over several lines are not supported here: write one line".to_owned(),
        });
    }
    Ok(value.to_owned())
}

/// Splits at commas outside quotes.
fn split_list(inner: &str) -> Vec<&str> {
    let mut items = vec![];
    let (mut start, mut quote, mut escaped) = (0, None, false);
    for (at, c) in inner.char_indices() {
        match quote {
            Some('"') if escaped => escaped = false,
            Some('"') if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '"' | '\'') && inner[start..at].trim().is_empty() => {
                quote = Some(c)
            }
            None if c == ',' => {
                items.push(&inner[start..at]);
                start = at + 1;
            }
            None => {}
        }
    }
    items.push(&inner[start..]);
    items
}

/// A text as a value: plain where that reads back the same here and in YAML, quoted otherwise.
fn quoted(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_alphanumeric())
        && !text.ends_with(char::is_whitespace)
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with(':')
        && !text.chars().any(char::is_control);
    if plain {
        text.to_owned()
    } else {
        serde_json::Value::from(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Document {
        Document::parse(text).unwrap().unwrap()
    }

    #[test]
    fn reads_values_in_every_form() {
        let document = read(
            "\u{feff}---\r\ntitle: Fix #42: it's \"odd\"\r\nq: \"a \\\"b\\\"\"\r\ns: 'it''s'\r\n\
             labels: [bug, \"a, b\", 'c']\r\none: bug\r\nblock:\r\n  - x\r\n  - \"y z\"\r\n\
             locked: true\r\nempty:\r\n# note\r\nother:\r\n  deep: 1\r\n---\r\n\r\nBody\r\n---\r\nmore\r\n",
        );
        assert_eq!(
            document.text("title").unwrap().unwrap(),
            "Fix #42: it's \"odd\""
        );
        assert_eq!(document.text("q").unwrap().unwrap(), "a \"b\"");
        assert_eq!(document.text("s").unwrap().unwrap(), "it's");
        assert_eq!(document.list("labels").unwrap(), ["bug", "a, b", "c"]);
        assert_eq!(document.list("one").unwrap(), ["bug"]);
        assert_eq!(document.list("block").unwrap(), ["x", "y z"]);
        assert_eq!(document.list("absent").unwrap(), [""; 0]);
        assert_eq!(document.flag("locked").unwrap(), Some(true));
        assert_eq!(document.text("empty").unwrap(), None);
        assert_eq!(document.body, "Body\n---\nmore");
        assert_eq!(read(&document.render()).body, document.body);
        assert!(document.render().contains("# note\nother:\n  deep: 1\n"));
    }

    #[test]
    fn bad_front_matter_is_named_by_line() {
        for (text, line) in [
            ("---\ntitle: x\n", 1),
            ("---\ntitle: x\nno colon\n---\n", 3),
            ("---\ntitle: x\ntitle: y\n---\n", 3),
            ("---\n  x: y\n---\n", 2),
            ("---\ntwo words: y\n---\n", 2),
        ] {
            assert_eq!(Document::parse(text).unwrap_err().line, line, "{text}");
        }
        for value in ["\"open", "'open", "|", "'a'b'"] {
            let document = read(&format!("---\na: 1\ntitle: {value}\n---\n"));
            assert_eq!(document.text("title").unwrap_err().line, 3, "{value}");
        }
        let document = read("---\nlabels: [a\nlocked: yes\ntitle:\n  deep: 1\n---\n");
        assert_eq!(document.list("labels").unwrap_err().line, 2);
        assert_eq!(document.flag("locked").unwrap_err().line, 3);
        assert_eq!(document.text("title").unwrap_err().line, 5);
        assert_eq!(Document::parse("no front matter").unwrap(), None);
        // A lone CR before the line feed that rendering adds became CRLF.
        assert_eq!(read(&read("---\n---\n\r").render()), read("---\n---\n\n"));
    }

    proptest! {
        #[test]
        fn what_is_set_is_read_back(title in "\\PC{0,40}|[ -~\n\t]{0,40}", body in "[ -~\n]{0,80}|\\PC{0,40}") {
            let mut document = Document::of_body(body.clone());
            document.set("title", &title);
            let again = read(&document.render());
            let expected = (!title.trim().is_empty()).then_some(title);
            prop_assert_eq!(again.text("title").unwrap(), expected);
            prop_assert_eq!(again.body, body);
        }

        #[test]
        fn never_panics(text in "(---\n)?([a-c]: [\\[\\]'\",|x-]{0,6}\n|- x\n| y\n){0,6}(---\n)?.{0,20}") {
            if let Ok(Some(document)) = Document::parse(&text) {
                for key in ["a", "b", "c"] {
                    let _ = (document.text(key), document.list(key), document.flag(key));
                }
                prop_assert_eq!(Document::parse(&document.render()).unwrap().unwrap().body, document.body);
            }
        }
    }
}
