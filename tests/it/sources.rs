//! The project's own files, as the tests about them read them.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// One Rust file of `src/`, as tokens.
pub struct Source {
    /// Its path from the root, with `/`.
    pub name: String,
    /// Its place in the module tree; empty for `lib.rs` and `main.rs`.
    pub module: Vec<String>,
    /// Whether it is compiled for tests alone.
    pub test: bool,
    /// Every path of two or more words with the line that it begins on, `use` trees spread out.
    pub paths: Vec<(usize, Vec<String>)>,
    /// Every macro that is called, with its line.
    pub macros: Vec<(usize, String)>,
    /// Every text in quotes, with its line.
    pub literals: Vec<(usize, String)>,
    words: Vec<(usize, String)>,
    test_modules: BTreeSet<String>,
}

impl Source {
    /// The lines on which a word of code stands.
    pub fn lines_with(&self, word: &str) -> Vec<usize> {
        let found = self.words.iter().filter(|(_, w)| w == word);
        found.map(|(line, _)| *line).collect()
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &Path, ends: &[&str], found: &mut Vec<PathBuf>) {
    let mut here: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .collect();
    here.sort();
    for path in here {
        if path.is_dir() {
            files(&path, ends, found);
        } else if ends.iter().any(|end| path.to_string_lossy().ends_with(end)) {
            found.push(path);
        }
    }
}

fn named(path: PathBuf) -> Option<(String, String)> {
    let text = String::from_utf8(fs::read(&path).unwrap()).ok()?;
    let name = path.strip_prefix(root()).unwrap();
    Some((name.to_string_lossy().replace('\\', "/"), text))
}

/// All Rust files of the project: name and text.
pub fn rust_files() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in ["src", "tests", "benches"] {
        files(&root().join(folder), &[".rs"], &mut found);
    }
    found.into_iter().filter_map(named).collect()
}

/// All text files of the project: sources, templates, documents, settings.
pub fn text_files() -> Vec<(String, String)> {
    let ends = [".rs", ".md", ".toml", ".sh", ".snap", ".expected"];
    let mut found = Vec::new();
    for folder in [
        "src",
        "tests",
        "benches",
        "templates",
        "ledger-examples",
        "docs",
        ".ci",
    ] {
        let ends: &[&str] = if folder == ".ci" { &[""] } else { &ends };
        files(&root().join(folder), ends, &mut found);
    }
    for entry in fs::read_dir(root()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() && ends.iter().any(|end| path.to_string_lossy().ends_with(end)) {
            found.push(path);
        }
    }
    found.into_iter().filter_map(named).collect()
}

/// Every Rust file of `src/`, with what only tests compile marked.
pub fn read_sources() -> Vec<Source> {
    let mut sources: Vec<Source> = rust_files()
        .into_iter()
        .filter(|(name, _)| name.starts_with("src/"))
        .map(|(name, text)| read(name, &text))
        .collect();
    let mut test_modules: Vec<Vec<String>> = Vec::new();
    for source in &sources {
        for name in &source.test_modules {
            let mut module = source.module.clone();
            match name.strip_prefix("beside ") {
                // `#[path = "x_tests.rs"]` is relative to the folder of the file.
                Some(file) => {
                    module.pop();
                    module.push(file.to_owned());
                }
                None => module.push(name.clone()),
            }
            test_modules.push(module);
        }
    }
    for source in &mut sources {
        source.test = test_modules.iter().any(|m| source.module.starts_with(m));
    }
    sources
}

fn read(name: String, text: &str) -> Source {
    let mut module: Vec<String> = name
        .trim_start_matches("src/")
        .trim_end_matches(".rs")
        .split('/')
        .map(str::to_owned)
        .collect();
    let last = module.last().map(String::as_str);
    if matches!(last, Some("mod" | "lib" | "main")) {
        module.pop();
    }
    let stream: TokenStream = text
        .parse()
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut source = Source {
        name,
        module,
        test: false,
        paths: Vec::new(),
        macros: Vec::new(),
        literals: Vec::new(),
        words: Vec::new(),
        test_modules: BTreeSet::new(),
    };
    source.walk(stream, &[]);
    source
}

impl Source {
    /// Reads tokens one by one; `prefix` is what stands before a group of a `use` tree.
    fn walk(&mut self, stream: TokenStream, prefix: &[String]) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            if is_cfg_test(&tokens, at) {
                at = self.skip_item(&tokens, at + 2);
                continue;
            }
            match &tokens[at] {
                TokenTree::Ident(_) => at = self.path(&tokens, at, prefix),
                TokenTree::Group(group) => {
                    self.walk(group.stream(), &[]);
                    at += 1;
                }
                TokenTree::Literal(literal) => {
                    let line = literal.span().start().line;
                    self.literals.push((line, literal.to_string()));
                    at += 1;
                }
                TokenTree::Punct(_) => at += 1,
            }
        }
    }

    /// Reads `a::b::c`, `a::{b, c::d}` or `name!`; gives the place behind it.
    fn path(&mut self, tokens: &[TokenTree], mut at: usize, prefix: &[String]) -> usize {
        let line = tokens[at].span().start().line;
        let mut path = prefix.to_vec();
        while let Some(TokenTree::Ident(word)) = tokens.get(at) {
            let word = word.to_string();
            self.words.push((line, word.clone()));
            if word != "self" || path.is_empty() {
                path.push(word);
            }
            at += 1;
            if !(is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':')) {
                break;
            }
            at += 2;
            match tokens.get(at) {
                Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                    self.walk(group.stream(), &path);
                    return at + 1;
                }
                // `Vec::<u8>::new`: what is between the angles is read as any other code.
                Some(TokenTree::Ident(_)) => {}
                _ => break,
            }
        }
        if is_punct(tokens.get(at), '!')
            && matches!(tokens.get(at + 1), Some(TokenTree::Group(_)))
            && let Some(name) = path.last()
        {
            self.macros.push((line, name.clone()));
        }
        if path.len() > 1 {
            self.paths.push((line, path));
        }
        at
    }

    /// Passes over the item behind `#[cfg(test)]`, noting a module whose file is elsewhere.
    fn skip_item(&mut self, tokens: &[TokenTree], mut at: usize) -> usize {
        let mut words: Vec<String> = Vec::new();
        let mut file = None;
        while let Some(token) = tokens.get(at) {
            at += 1;
            match token {
                TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
                    let attribute = group.stream().to_string();
                    if attribute.starts_with("path") {
                        let name = attribute.split('"').nth(1).unwrap_or_default();
                        file = Some(name.trim_end_matches(".rs").to_owned());
                    }
                }
                TokenTree::Ident(word) => words.push(word.to_string()),
                TokenTree::Group(group)
                    if group.delimiter() == Delimiter::Brace
                        && !words.iter().any(|w| w == "use") =>
                {
                    return at;
                }
                TokenTree::Punct(p) if p.as_char() == ';' => {
                    if let Some(place) = words.iter().position(|w| w == "mod")
                        && let Some(name) = words.get(place + 1)
                    {
                        self.test_modules.insert(match &file {
                            Some(file) => format!("beside {file}"),
                            None => name.clone(),
                        });
                    }
                    return at;
                }
                _ => {}
            }
        }
        at
    }
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(p)) if p.as_char() == wanted)
}

fn is_cfg_test(tokens: &[TokenTree], at: usize) -> bool {
    is_punct(tokens.get(at), '#')
        && matches!(tokens.get(at + 1), Some(TokenTree::Group(group))
            if group.stream().to_string().replace(' ', "") == "cfg(test)")
}

#[test]
fn code_is_told_from_comments_texts_and_tests() {
    let source = read(
        "src/room/file.rs".to_owned(),
        "use std::{fs, io::{self, Read}};\n\
         // std::env::var\n\
         const A: &str = \"std::net\";\n\
         fn f() { todo!(); crate::git::run(); }\n\
         #[cfg(test)]\nmod tests { use std::process::Command; fn g() { println!(); } }\n\
         #[cfg(test)]\n#[path = \"y.rs\"]\nmod elsewhere;\n",
    );
    let paths: Vec<String> = source.paths.iter().map(|(_, p)| p.join("::")).collect();
    assert_eq!(
        paths,
        ["std::fs", "std::io", "std::io::Read", "crate::git::run"]
    );
    assert_eq!(source.macros, [(4, "todo".to_owned())]);
    assert_eq!(source.module, ["room", "file"]);
    assert!(source.test_modules.contains("beside y"));
}
