//! STAND-IN for room F's `forge`: dropped at merge.
#![allow(missing_docs)]

#[derive(Debug)]
pub struct TrustedText {
    title: String,
    body: String,
    comments: Vec<TrustedComment>,
}

#[derive(Debug)]
pub struct TrustedComment {
    author: String,
    text: String,
}

impl TrustedText {
    pub fn title(&self) -> &str {
        &self.title
    }
    pub fn body(&self) -> &str {
        &self.body
    }
    pub fn comments(&self) -> &[TrustedComment] {
        &self.comments
    }
    #[cfg(test)]
    pub(crate) fn for_tests(title: &str, body: &str, comments: &[(&str, &str)]) -> TrustedText {
        let comments = comments
            .iter()
            .map(|(author, text)| TrustedComment { author: (*author).to_owned(), text: (*text).to_owned() })
            .collect();
        TrustedText { title: title.to_owned(), body: body.to_owned(), comments }
    }
}

impl TrustedComment {
    pub fn author(&self) -> &str {
        &self.author
    }
    pub fn text(&self) -> &str {
        &self.text
    }
}
