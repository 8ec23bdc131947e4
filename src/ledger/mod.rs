//! STAND-IN for room A's `ledger`: dropped at merge.
#![allow(missing_docs)]

#[derive(Debug, thiserror::Error)]
#[error("not a ledger")]
pub struct Error;

#[derive(Debug)]
pub struct Criterion {
    pub id: String,
    pub text: String,
}

#[derive(Debug)]
pub struct Step {
    pub number: u32,
    pub title: String,
    pub criteria: Vec<String>,
    pub no_test: Option<String>,
}

#[derive(Debug)]
pub struct Ledger {
    criteria: Vec<Criterion>,
    steps: Vec<Step>,
}

impl Ledger {
    pub fn parse(bytes: &[u8]) -> Result<Ledger, Error> {
        let text = std::str::from_utf8(bytes).map_err(|_| Error)?;
        let (mut criteria, mut steps) = (Vec::new(), Vec::new());
        for line in text.lines() {
            if let Some((id, text)) = line.strip_prefix("- AC").and_then(|rest| rest.split_once(": ")) {
                criteria.push(Criterion { id: format!("AC{id}"), text: text.to_owned() });
            } else if let Some((number, rest)) = line.get(6..).and_then(|rest| rest.split_once(". ")) {
                let Ok(number) = number.parse() else { continue };
                let (title, ids) = rest.rsplit_once(" (").ok_or(Error)?;
                let ids = ids.trim_end_matches(')').split(", ").map(str::to_owned).collect();
                steps.push(Step { number, title: title.to_owned(), criteria: ids, no_test: None });
            }
        }
        Ok(Ledger { criteria, steps })
    }
    pub fn criteria(&self) -> &[Criterion] {
        &self.criteria
    }
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
}
