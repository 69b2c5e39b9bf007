//! The results for the bundled captures, and for damaged captures made from them, violate no invariant.

#[path = "../examples/invariants/mutate.rs"]
mod mutate;

use std::fs;
use std::path::PathBuf;

use _engine::capture::MergedReader;
use _engine::output::invariants::check_capture;

/// A part of the twenty thousand that `examples/invariants` checks.
const MUTATED: u64 = 1_000;

fn bundled() -> Vec<PathBuf> {
    let captures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../captures");
    let mut found = Vec::new();
    for folder in ["broken", "lab", "wild"] {
        let entries = fs::read_dir(captures.join(folder)).expect("a folder of captures");
        found.extend(entries.map(|entry| entry.expect("a capture").path()));
    }
    found.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension != "toml")
    });
    found.sort();
    found
}

#[test]
fn bundled_captures() {
    let mut found = Vec::new();
    let mut count = 0;
    for path in bundled() {
        if let Ok(input) = MergedReader::open(&[&path]) {
            count += 1;
            found.extend(
                check_capture(input)
                    .iter()
                    .map(|violation| format!("{}: {violation}", path.display())),
            );
        }
    }
    assert!(count > 30, "{count} captures were read");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn damaged_captures() {
    let paths = bundled();
    let bases: Vec<_> = paths
        .iter()
        .filter_map(|path| mutate::Base::read(path.to_str()?))
        .collect();
    let mut found = Vec::new();
    for seed in 0..MUTATED {
        let (bytes, name) = mutate::mutated(&bases, seed);
        if let Some(input) = mutate::open(bytes) {
            found.extend(
                check_capture(input)
                    .iter()
                    .map(|violation| format!("{name}, seed {seed}: {violation}")),
            );
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
