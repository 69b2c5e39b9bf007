//! Conversations at one point, and their packets after a path to another → the packets' fates.
#![no_main]

mod common;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| common::two::pair_twice(input));
