//! Conversations derived from the input → every query on their capture.
#![no_main]

mod common;

use common::everything::query_everything;
use common::story::{pcap, Story};
use common::tape::Tape;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| query_everything(&pcap(&Story::decode(&mut Tape(input)).frames)));
