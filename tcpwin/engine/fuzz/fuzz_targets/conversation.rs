//! Conversations that the input tells → all that can be asked of their capture.
#![no_main]

mod common;

use common::everything::ask_everything;
use common::story::{pcap, Story};
use common::tape::Tape;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| ask_everything(&pcap(&Story::decode(&mut Tape(input)).frames)));
