//! Token text: what two pieces of source have in common when only their layout differs.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::Meta;

/// The tokens of a piece of source as text: the same whatever the blanks, the comments and the commas before closing
/// brackets (which formatters add and take away with the line breaks). Literals are kept as they are.
pub(super) fn form_of(source: &str) -> String {
    let mut out = String::new();
    match source.parse::<TokenStream>() {
        Ok(tokens) => print_tokens(tokens, &mut out),
        Err(_) => out.push_str(source),
    }
    out
}

pub(super) fn print_tokens(tokens: TokenStream, out: &mut String) {
    let mut trees = tokens.into_iter().peekable();
    while let Some(tree) = trees.next() {
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                out.push_str(open);
                print_tokens(group.stream(), out);
                out.push_str(close);
            }
            TokenTree::Punct(punct) if punct.as_char() == ',' && trees.peek().is_none() => {}
            TokenTree::Punct(punct) => out.push(punct.as_char()),
            other => {
                out.push_str(&other.to_string());
                out.push(' ');
            }
        }
    }
}

/// An attribute's content as text.
pub(super) fn meta_text(meta: &Meta) -> String {
    let mut out = path_text(meta.path());
    if let Meta::List(list) = meta {
        out.push('(');
        print_tokens(list.tokens.clone(), &mut out);
        out.push(')');
    }
    out
}

pub(super) fn path_text(path: &syn::Path) -> String {
    let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
    names.join("::")
}
