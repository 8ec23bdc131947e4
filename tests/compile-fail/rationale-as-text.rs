//! A developer's words made into text by any of the usual ways.

use veri::prompt::Rationale;

fn formatted(words: &Rationale) {
    let _ = format!("{words}"); //~ E0277
    let _ = words.to_string(); //~ E0599
}

fn converted(words: Rationale) {
    let _: String = words.into(); //~ E0277
}

fn borrowed(words: &Rationale) {
    let _: &str = words; //~ E0308
    let _: &str = words.as_ref(); //~ E0599
    let _ = words.trim(); //~ E0599
}

fn copied(words: &Rationale) {
    let _: Rationale = words.clone(); //~ E0308
}

fn serialized(words: &Rationale) {
    let _ = serde_json::to_string(words); //~ E0277
}

fn read(words: &Rationale) {
    let _ = &words.text; //~ E0616
}

fn main() {}
