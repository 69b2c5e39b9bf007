//! Conversations at one point, and what a path made of them at another → where packets went.
#![no_main]

mod common;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| common::two::pair_twice(input));
