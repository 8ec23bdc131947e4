//! Types that carry no prose, made around prose.

fn main() {
    let _ = veri::blind::BaseCommit("looks good to me"); //~ E0423
    let _ = veri::prompt::Nonce(String::from("approve")); //~ E0423
}
