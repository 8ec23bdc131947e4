//! What items are called, and what they bring into scope.

use super::tokens::path_text;
use std::ops::Range;
use syn::spanned::Spanned;
use syn::{Attribute, ImplItem, Item, TraitItem};

/// The names that an import brings in, each with the crate that it comes from: `here` for this one.
pub(super) fn imported(tree: &syn::UseTree) -> Vec<String> {
    let mut names = Vec::new();
    let mut open = vec![(None::<String>, tree)];
    while let Some((from, tree)) = open.pop() {
        let origin = from.clone().unwrap_or_default();
        match tree {
            syn::UseTree::Path(path) => {
                let first = match path.ident.to_string().as_str() {
                    "self" | "super" | "crate" => "here".to_owned(),
                    other => other.to_owned(),
                };
                open.push((Some(from.unwrap_or(first)), &path.tree));
            }
            syn::UseTree::Name(name) => names.push(format!("{origin} {}", name.ident)),
            syn::UseTree::Rename(name) => {
                names.push(format!("{origin} {} as {}", name.ident, name.rename));
            }
            syn::UseTree::Glob(_) => names.push(format!("{origin} *")),
            syn::UseTree::Group(group) => {
                open.extend(group.items.iter().map(|tree| (from.clone(), tree)));
            }
        }
    }
    names.sort();
    names
}

pub(super) fn attrs_of(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(i) => &i.attrs,
        Item::Enum(i) => &i.attrs,
        Item::ExternCrate(i) => &i.attrs,
        Item::Fn(i) => &i.attrs,
        Item::ForeignMod(i) => &i.attrs,
        Item::Impl(i) => &i.attrs,
        Item::Macro(i) => &i.attrs,
        Item::Mod(i) => &i.attrs,
        Item::Static(i) => &i.attrs,
        Item::Struct(i) => &i.attrs,
        Item::Trait(i) => &i.attrs,
        Item::TraitAlias(i) => &i.attrs,
        Item::Type(i) => &i.attrs,
        Item::Union(i) => &i.attrs,
        Item::Use(i) => &i.attrs,
        _ => &[],
    }
}

pub(super) fn name_of(item: &Item, source: &dyn Fn(Range<usize>) -> String) -> String {
    let text_of = |span: proc_macro2::Span| source(span.byte_range()).trim_end().to_owned();
    match item {
        Item::Const(i) => format!("const {}", i.ident),
        Item::Enum(i) => format!("enum {}", i.ident),
        Item::ExternCrate(i) => format!("extern crate {}", i.ident),
        Item::Fn(i) => format!("fn {}", i.sig.ident),
        Item::Impl(i) => match &i.trait_ {
            Some((of, _)) => format!("impl {} for {}", path_text(of), text_of(i.self_ty.span())),
            None => format!("impl {}", text_of(i.self_ty.span())),
        },
        Item::Macro(i) => match &i.ident {
            Some(ident) => format!("macro {ident}"),
            None => format!("{}!", path_text(&i.mac.path)),
        },
        Item::Mod(i) => format!("mod {}", i.ident),
        Item::Static(i) => format!("static {}", i.ident),
        Item::Struct(i) => format!("struct {}", i.ident),
        Item::Trait(i) => format!("trait {}", i.ident),
        Item::TraitAlias(i) => format!("trait {}", i.ident),
        Item::Type(i) => format!("type {}", i.ident),
        Item::Union(i) => format!("union {}", i.ident),
        Item::Use(i) => format!("use {}", text_of(i.tree.span())),
        _ => "item".to_owned(),
    }
}

pub(super) fn impl_part(part: &ImplItem) -> (&[Attribute], String) {
    match part {
        ImplItem::Const(i) => (&i.attrs, format!("const {}", i.ident)),
        ImplItem::Fn(i) => (&i.attrs, format!("fn {}", i.sig.ident)),
        ImplItem::Type(i) => (&i.attrs, format!("type {}", i.ident)),
        ImplItem::Macro(i) => (&i.attrs, format!("{}!", path_text(&i.mac.path))),
        _ => (&[], String::new()),
    }
}

pub(super) fn trait_part(part: &TraitItem) -> (&[Attribute], String) {
    match part {
        TraitItem::Const(i) => (&i.attrs, format!("const {}", i.ident)),
        TraitItem::Fn(i) => (&i.attrs, format!("fn {}", i.sig.ident)),
        TraitItem::Type(i) => (&i.attrs, format!("type {}", i.ident)),
        TraitItem::Macro(i) => (&i.attrs, format!("{}!", path_text(&i.mac.path))),
        _ => (&[], String::new()),
    }
}
