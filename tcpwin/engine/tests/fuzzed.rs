//! Regression tests for inputs found by fuzzing, and random conversations: every query is run on them.

use std::fs;
use std::path::Path;

#[path = "../fuzz/fuzz_targets/common/mod.rs"]
mod common;

use common::everything::query_everything;
use common::story::{pcap, Story};
use common::tape::Tape;
use common::two::pair_twice;

fn corpus(target: &str) -> impl Iterator<Item = Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let files: Vec<_> = fs::read_dir(folder.join(target))
        .expect("a corpus")
        .collect();
    assert!(files.len() > 40, "{target}");
    files
        .into_iter()
        .map(|file| fs::read(file.expect("an entry").path()).expect("a file"))
}

#[test]
fn fuzzing_corpus() {
    for input in corpus("readers").chain(corpus("analysis")) {
        query_everything(&input);
    }
    for input in corpus("conversation") {
        query_everything(&pcap(&Story::decode(&mut Tape(&input)).frames));
    }
    for input in corpus("pair") {
        pair_twice(&input);
    }
}

#[test]
fn conversations_of_any_bytes() {
    let mut state = 8642u64;
    for length in 0..60 {
        let tape: Vec<u8> = (0..length * 8)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        query_everything(&pcap(&Story::decode(&mut Tape(&tape)).frames));
    }
}
