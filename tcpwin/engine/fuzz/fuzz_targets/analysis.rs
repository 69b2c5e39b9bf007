//! File bytes → all that can be asked of a capture.
#![no_main]

mod common;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| common::everything::ask_everything(input));
