//! Replays the fuzzer's corpus: every input that once reached new code satisfies the general invariants.

use std::fs;
use std::path::Path;

use super::*;

#[test]
fn the_fuzz_corpus() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/readers");
    let mut files = 0;
    for entry in fs::read_dir(folder).expect("the corpus is part of the source") {
        let path = entry.expect("can be listed").path();
        let bytes = fs::read(&path).expect("can be read");
        super::damage::check_invariants(&bytes);
        let whole = open(&bytes).map(|mut reader| drain(&mut reader)).ok();
        let slow = Box::new(Trickle(Cursor::new(bytes)));
        let trickled =
            CaptureReader::from_reader(slow, "slow").map(|mut reader| drain(&mut reader));
        assert!(whole == trickled.ok(), "{}", path.display());
        files += 1;
    }
    assert!(files > 0);
}
