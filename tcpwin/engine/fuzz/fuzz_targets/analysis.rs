//! File bytes → every query on a capture.
#![no_main]

mod common;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| common::everything::query_everything(input));
