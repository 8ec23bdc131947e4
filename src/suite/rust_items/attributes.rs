//! Which attributes make a test, and which decide whether what they stand on is compiled at all.

use super::tokens::meta_text;
use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;
use syn::punctuated::Punctuated;
use syn::{Attribute, Item, Meta, Token};

pub(super) fn is_inner(attr: &Attribute) -> bool {
    matches!(attr.style, syn::AttrStyle::Inner(_))
}

pub(super) fn last_segment(path: &syn::Path) -> Option<String> {
    path.segments.last().map(|s| s.ident.to_string())
}

/// Whether a name is that of an attribute that makes a function a test or a part of one.
pub(super) fn is_test_word(name: &str) -> bool {
    matches!(
        name,
        "test"
            | "rstest"
            | "test_case"
            | "proptest"
            | "property_test"
            | "quickcheck"
            | "traced_test"
            | "parameterized"
            | "test_matrix"
            | "wasm_bindgen_test"
            | "gtest"
            | "should_panic"
            | "fixture"
    ) || name.ends_with("_test")
        || name.starts_with("test_")
}

/// `#[test]` and its kin, also behind `cfg_attr`.
pub(super) fn marks_a_test(attr: &Attribute) -> bool {
    last_segment(attr.path()).is_some_and(|name| is_test_word(&name))
        || attr.path().is_ident("cfg_attr") && conditional(&attr.meta).iter().any(marks)
}

pub(super) fn marks(meta: &Meta) -> bool {
    last_segment(meta.path()).is_some_and(|name| is_test_word(&name))
}

/// A test attribute, or a `cfg` that asks for `test`.
pub(super) fn makes_a_test(attr: &Attribute) -> bool {
    marks_a_test(attr) || asks_for_test(attr)
}

pub(super) fn asks_for_test(attr: &Attribute) -> bool {
    attr.path().is_ident("cfg") && nested(&attr.meta).iter().any(|meta| wants_test(meta, true))
}

/// Whether a predicate names `test` other than to exclude it.
pub(super) fn wants_test(meta: &Meta, wanted: bool) -> bool {
    match meta {
        Meta::Path(path) => path.is_ident("test") && wanted,
        Meta::List(list) if list.path.is_ident("not") => {
            nested(meta).iter().any(|m| wants_test(m, !wanted))
        }
        Meta::List(_) => nested(meta).iter().any(|m| wants_test(m, wanted)),
        Meta::NameValue(_) => false,
    }
}

/// The arguments of `cfg(…)`, `all(…)`, `cfg_attr(…)`; nothing when they are not of that form.
pub(super) fn nested(meta: &Meta) -> Vec<Meta> {
    match meta {
        Meta::List(list) => list
            .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
            .map(|metas| metas.into_iter().collect())
            .unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// The attributes that a `cfg_attr` adds.
pub(super) fn conditional(meta: &Meta) -> Vec<Meta> {
    nested(meta).into_iter().skip(1).collect()
}

/// What attributes ask for before what they stand on is compiled or run, as text.
pub(super) fn gates_of(attrs: &[Attribute]) -> BTreeSet<String> {
    attrs
        .iter()
        .filter(|attr| {
            let gate = |meta: &Meta| {
                matches!(
                    last_segment(meta.path()).as_deref(),
                    Some("cfg" | "cfg_attr" | "path" | "test_runner" | "ignore" | "no_main")
                )
            };
            if attr.path().is_ident("cfg_attr") {
                conditional(&attr.meta).iter().any(gate)
            } else {
                gate(&attr.meta) && !attr.path().is_ident("path")
            }
        })
        .map(|attr| meta_text(&attr.meta))
        .filter(|gate| gate != "cfg(test )")
        .collect()
}

pub(super) fn path_of(attrs: &[Attribute]) -> Option<String> {
    attrs.iter().find_map(|attr| match &attr.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit {
                lit: syn::Lit::Str(text),
                ..
            }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}

/// Whether tokens hold `#[test]` or one of its kin, at any depth.
pub(super) fn holds_a_test(tokens: TokenStream) -> bool {
    let mut open = vec![tokens];
    while let Some(tokens) = open.pop() {
        let mut after_pound = false;
        for tree in tokens {
            match tree {
                TokenTree::Punct(punct) => after_pound = punct.as_char() == '#',
                TokenTree::Group(group) => {
                    if after_pound && names_a_test(group.stream()) {
                        return true;
                    }
                    after_pound = false;
                    open.push(group.stream());
                }
                _ => after_pound = false,
            }
        }
    }
    false
}

/// Whether what stands in `#[…]` is a test attribute, or `cfg(test)`.
pub(super) fn names_a_test(attribute: TokenStream) -> bool {
    syn::parse2::<Meta>(attribute).is_ok_and(|meta| {
        marks(&meta)
            || meta.path().is_ident("cfg") && nested(&meta).iter().any(|m| wants_test(m, true))
    })
}

pub(super) fn test_macros(items: &[Item]) -> BTreeSet<String> {
    items
        .iter()
        .filter_map(|item| match item {
            Item::Macro(call) if holds_a_test(call.mac.tokens.clone()) => {
                call.ident.as_ref().map(ToString::to_string)
            }
            _ => None,
        })
        .collect()
}
