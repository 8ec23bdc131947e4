//! What was found in a Rust source.

use std::collections::BTreeSet;
use std::ops::Range;

/// Why a source could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct Unparsable {
    /// From 1; 0 when the place is not known.
    pub line: usize,
    /// In characters, from 1; 0 when the place is not known.
    pub column: usize,
    /// What the parser says.
    pub message: String,
}

/// What one source holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RustFile {
    /// Whether all of it is test code (`#![cfg(test)]`, or read as such).
    pub whole: bool,
    /// The topmost test items in the order of the source.
    pub items: Vec<TestItem>,
    /// The modules, impls and traits of the code, each with those around it from outside in, and where its closing
    /// brace stands.
    pub places: Vec<(Vec<Container>, usize)>,
    /// The modules that it declares and does not hold.
    pub declares: Vec<Declaration>,
    /// What the file's own inner attributes ask for before any of it is compiled.
    pub gates: BTreeSet<String>,
}

/// A topmost test item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestItem {
    /// Its kind and name: `mod tests`, `fn refuses`.
    pub name: String,
    /// The modules, impls and traits that it stands in, from outside in.
    pub within: Vec<Container>,
    /// Its bytes in the source, attributes and doc comments included.
    pub span: Range<usize>,
    /// The parts that are compared one by one.
    pub leaves: Vec<Leaf>,
}

/// A module, impl or trait of the code, in which a test item stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// Its kind and name: `mod outer`, `impl Bank`.
    pub name: String,
    /// Its text up to and with the opening brace.
    pub opening: String,
}

/// What a leaf is, as far as protection cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeafKind {
    /// A test function, or a macro whose tokens hold one.
    Test,
    /// Anything else that tests may use.
    Helper,
    /// A `use`.
    Import,
    /// A test module's attributes and name, its content aside.
    Header,
    /// `mod x;`.
    Declaration,
}

/// One part of a test item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leaf {
    /// The path of the module it stands in, within the file (`""`, `tests`, `outer::tests`).
    pub module: String,
    /// Its kind and name.
    pub name: String,
    /// What it is.
    pub kind: LeafKind,
    /// Its bytes.
    pub text: String,
    /// Its tokens: the same whatever the indentation and the comments. Of an import: the names that it brings in, a
    /// line each, without the path within the crate.
    pub form: String,
    /// What the modules around it ask for, `cfg(test)` aside.
    pub gates: BTreeSet<String>,
}

/// `mod x;`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declaration {
    /// The module's name.
    pub name: String,
    /// The inline modules of the file that it stands in, with the `#[path]` of each, from outside in.
    pub inline: Vec<(String, Option<String>)>,
    /// Its own `#[path]`.
    pub path: Option<String>,
    /// Whether it is a test item.
    pub test: bool,
    /// What it and the modules around it ask for, `cfg(test)` aside.
    pub gates: BTreeSet<String>,
}
