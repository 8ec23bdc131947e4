//! The tests in Rust sources, wherever they stand: what they are, where their bytes are, what gates them.
//!
//! A test item is an item under a `cfg` that asks for `test`, a function with a test attribute, or a macro whose
//! tokens hold such a function. The topmost one is the item, with its attributes; what stands in it are its leaves.
//! Doc tests are not test items: they stand in the documentation of the code, which green has to be free to change.
//! Tests that a macro makes without a test attribute in its tokens or in its definition in the same file are not seen.

mod attributes;
mod names;
mod shape;
mod tokens;

pub use shape::{Container, Declaration, Leaf, LeafKind, RustFile, TestItem, Unparsable};

use attributes::{
    asks_for_test, gates_of, holds_a_test, is_inner, last_segment, makes_a_test, marks_a_test,
    path_of, test_macros,
};
use names::{attrs_of, impl_part, imported, name_of, trait_part};
use std::collections::BTreeSet;
use std::ops::Range;
use syn::Item;
use syn::spanned::Spanned;
use tokens::form_of;

/// Brackets nested deeper than this are not read: the parser recurses.
const MAX_NESTING: usize = 400;

/// Sources larger than this, in bytes, are not read.
const MAX_SOURCE: usize = 8 << 20;

/// The stack of the thread that parses: room for [`MAX_NESTING`] levels of an unoptimised build.
const STACK: usize = 256 << 20;

/// Reads one source; `whole`: all of it is test code.
///
/// # Errors
/// What syn cannot parse, or what is too large or nested too deeply to be parsed safely.
pub fn read(text: &str, whole: bool) -> Result<RustFile, Unparsable> {
    read_all(vec![(text, whole)]).remove(0)
}

/// Reads many sources, on one thread with a stack of its own.
pub fn read_all(sources: Vec<(&str, bool)>) -> Vec<Result<RustFile, Unparsable>> {
    let broken = |message: String| Unparsable {
        line: 0,
        column: 0,
        message,
    };
    let count = sources.len();
    std::thread::scope(|scope| {
        let reader = std::thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, || {
                sources
                    .into_iter()
                    .map(|(text, whole)| {
                        let file = read_here(text, whole);
                        proc_macro2::extra::invalidate_current_thread_spans();
                        file
                    })
                    .collect::<Vec<_>>()
            });
        let failed = match reader.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(files)) => return files,
            Ok(Err(_)) => "the parser failed".to_owned(),
            Err(error) => format!("no thread for the parser: {error}"),
        };
        (0..count).map(|_| Err(broken(failed.clone()))).collect()
    })
}

fn read_here(text: &str, whole: bool) -> Result<RustFile, Unparsable> {
    let refused = |message: &str| Unparsable {
        line: 0,
        column: 0,
        message: message.to_owned(),
    };
    if text.len() > MAX_SOURCE {
        return Err(refused("larger than 8 MiB"));
    }
    if nests_too_deeply(text) {
        return Err(refused("nested too deeply"));
    }
    // What syn::parse_file leaves out of its spans: a byte order mark and a `#!` line.
    let mut skip = if text.starts_with('\u{feff}') { 3 } else { 0 };
    if text[skip..].starts_with("#!") && !text[skip + 2..].trim_start().starts_with('[') {
        skip += text[skip..].find('\n').unwrap_or(text.len() - skip);
    }
    let file: syn::File = syn::parse_str(&text[skip..]).map_err(|error| {
        let at = error.span().start();
        Unparsable {
            line: at.line,
            column: at.column + 1,
            message: error.to_string(),
        }
    })?;
    let whole = whole || file.attrs.iter().any(asks_for_test);
    let mut reader = Reader {
        text,
        skip,
        macros: test_macros(&file.items),
        out: RustFile {
            whole,
            gates: gates_of(&file.attrs),
            ..RustFile::default()
        },
    };
    let here = Here::default();
    for item in &file.items {
        if whole {
            reader.test_item(item, &here);
        } else {
            reader.item(item, &here);
        }
    }
    Ok(reader.out)
}

/// A bound that holds whatever strings and comments contain: they can only make it refuse earlier.
fn nests_too_deeply(text: &str) -> bool {
    let (mut depth, mut deepest) = (0usize, 0usize);
    let (mut run, mut longest) = (0usize, 0usize);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        run = match byte {
            b'!' | b'&' | b'*' | b'-' | b'<' | b'|' => run + 1,
            b' ' | b'\t' | b'\n' | b'\r' => run,
            _ => 0,
        };
        deepest = deepest.max(depth);
        longest = longest.max(run);
    }
    // Rules drawn in comments (`// -----`, `/*****/`) are long runs of these, too, though not this long.
    deepest > MAX_NESTING || longest > 8 * MAX_NESTING
}

/// Where the reader stands in the code.
#[derive(Clone, Default)]
struct Here {
    module: String,
    inline: Vec<(String, Option<String>)>,
    within: Vec<Container>,
    gates: BTreeSet<String>,
}

impl Here {
    fn inside(&self, item: &syn::ItemMod) -> Here {
        let mut here = self.clone();
        if !here.module.is_empty() {
            here.module.push_str("::");
        }
        here.module.push_str(&item.ident.to_string());
        here.inline
            .push((item.ident.to_string(), path_of(&item.attrs)));
        here.gates.extend(gates_of(&item.attrs));
        here
    }
}

struct Reader<'a> {
    text: &'a str,
    /// Bytes that were left out before the parser's first.
    skip: usize,
    /// Macros defined in this file whose tokens hold a test.
    macros: BTreeSet<String>,
    out: RustFile,
}

impl Reader<'_> {
    fn name(&self, item: &Item) -> String {
        name_of(item, &|span| {
            form_of(&self.text[span.start + self.skip..span.end + self.skip])
        })
    }

    fn span(&self, spanned: &impl Spanned) -> Range<usize> {
        let span = spanned.span().byte_range();
        span.start + self.skip..span.end + self.skip
    }

    /// An item of the code.
    fn item(&mut self, item: &Item, here: &Here) {
        if self.is_test(item) {
            self.test_item(item, here);
            return;
        }
        match item {
            Item::Mod(module) => match &module.content {
                None => self.declaration(module, here, false),
                Some((brace, items)) => {
                    let mut inner = here.inside(module);
                    self.enter(&mut inner, item, brace);
                    for item in items {
                        self.item(item, &inner);
                    }
                }
            },
            Item::Impl(block) => {
                let mut inner = here.clone();
                self.enter(&mut inner, item, &block.brace_token);
                for part in &block.items {
                    let (attrs, name) = impl_part(part);
                    if attrs.iter().any(makes_a_test) {
                        self.part(part, name, &inner);
                    }
                }
            }
            Item::Trait(block) => {
                let mut inner = here.clone();
                self.enter(&mut inner, item, &block.brace_token);
                for part in &block.items {
                    let (attrs, name) = trait_part(part);
                    if attrs.iter().any(makes_a_test) {
                        self.part(part, name, &inner);
                    }
                }
            }
            _ => {}
        }
    }

    /// Steps into a module, impl or trait of the code.
    fn enter(&mut self, here: &mut Here, item: &Item, brace: &syn::token::Brace) {
        let open = brace.span.open().byte_range().end + self.skip;
        here.within.push(Container {
            name: self.name(item),
            opening: self.text[self.span(item).start..open].to_owned(),
        });
        let close = brace.span.close().byte_range().start + self.skip;
        self.out.places.push((here.within.clone(), close));
    }

    /// A test item in an impl or trait of the code.
    fn part(&mut self, part: &impl Spanned, name: String, here: &Here) {
        let span = self.span(part);
        let leaf = Leaf {
            module: here.place(),
            name: name.clone(),
            kind: LeafKind::Helper,
            text: self.text[span.clone()].to_owned(),
            form: form_of(&self.text[span.clone()]),
            gates: here.gates.clone(),
        };
        self.out.items.push(TestItem {
            name,
            within: here.within.clone(),
            span,
            leaves: vec![leaf],
        });
    }

    fn test_item(&mut self, item: &Item, here: &Here) {
        let mut leaves = Vec::new();
        self.leaves(item, here, &mut leaves);
        self.out.items.push(TestItem {
            name: self.name(item),
            within: here.within.clone(),
            span: self.span(item),
            leaves,
        });
    }

    fn leaves(&mut self, item: &Item, here: &Here, out: &mut Vec<Leaf>) {
        let span = self.span(item);
        let mut leaf = Leaf {
            module: here.place(),
            name: self.name(item),
            kind: LeafKind::Helper,
            text: String::new(),
            form: String::new(),
            gates: here.gates.clone(),
        };
        match item {
            Item::Mod(module) => match &module.content {
                Some((brace, items)) => {
                    let open = brace.span.open().byte_range().end + self.skip;
                    leaf.kind = LeafKind::Header;
                    leaf.text = self.text[span.start..open].to_owned();
                    for attr in module.attrs.iter().filter(|a| is_inner(a)) {
                        leaf.text.push_str(&self.text[self.span(attr)]);
                    }
                    leaf.form.clone_from(&leaf.text);
                    out.push(leaf);
                    let inner = here.inside(module);
                    for item in items {
                        self.leaves(item, &inner, out);
                    }
                    return;
                }
                None => {
                    leaf.kind = LeafKind::Declaration;
                    self.declaration(module, here, true);
                }
            },
            Item::Use(_) => leaf.kind = LeafKind::Import,
            Item::Fn(function) if function.attrs.iter().any(marks_a_test) => {
                leaf.kind = LeafKind::Test;
            }
            // A macro_rules! that makes tests is a helper: a new one could stand in for assert_eq!.
            Item::Macro(call) if call.ident.is_none() && self.is_test(item) => {
                leaf.kind = LeafKind::Test;
            }
            _ => {}
        }
        leaf.text = self.text[span].to_owned();
        leaf.form = match item {
            Item::Use(import) => imported(&import.tree).join("\n"),
            _ => form_of(&leaf.text),
        };
        out.push(leaf);
    }

    fn declaration(&mut self, module: &syn::ItemMod, here: &Here, test: bool) {
        let mut gates = here.gates.clone();
        gates.extend(gates_of(&module.attrs));
        self.out.declares.push(Declaration {
            name: module.ident.to_string().trim_start_matches("r#").to_owned(),
            inline: here.inline.clone(),
            path: path_of(&module.attrs),
            test,
            gates,
        });
    }

    fn is_test(&self, item: &Item) -> bool {
        if attrs_of(item).iter().any(makes_a_test) {
            return true;
        }
        match item {
            Item::Macro(call) => {
                holds_a_test(call.mac.tokens.clone())
                    || last_segment(&call.mac.path).is_some_and(|name| self.macros.contains(&name))
            }
            Item::Verbatim(tokens) => holds_a_test(tokens.clone()),
            _ => false,
        }
    }
}

impl Here {
    /// The module path, and the impl or trait in it, when there is one.
    fn place(&self) -> String {
        match self.within.last() {
            Some(container) if !container.name.starts_with("mod ") => {
                format!("{}::<{}>", self.module, container.name)
            }
            _ => self.module.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
