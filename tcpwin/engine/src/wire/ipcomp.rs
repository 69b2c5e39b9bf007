//! IP payload compression (RFC 3173) with DEFLATE (RFC 2394): inflates enough to read the inner headers.

use flate2::{Decompress, FlushDecompress, Status};

use super::outcome::Outcome;
use super::view::{Layer, View};
use super::walk::Walk;

const HEADER_LEN: usize = 4;
/// RFC 3173 §3.3: the well-known CPI of DEFLATE; those of other algorithms are below 64 too.
const DEFLATE: u16 = 2;
/// CPIs from here on are negotiated and do not identify an algorithm; DEFLATE, the one used in practice, is tried.
const FIRST_NEGOTIATED: u16 = 256;
const IPV4: u8 = 4;
const IPV6: u8 = 41;

const PREFIX_LEN: usize = 256;
/// The longest payload of an IP datagram, which bounds the work per frame.
const MAX_INFLATED: usize = 65_535;

/// A separate function, because its buffers would enlarge the walk's stack frame.
#[cold]
#[inline(never)]
pub(super) fn descend(walk: &mut Walk<'_>, view: View<'_>) -> Outcome {
    match inflate_header(walk, view) {
        Ok(outcome) | Err(outcome) => outcome,
    }
}

fn inflate_header(walk: &mut Walk<'_>, view: View<'_>) -> Result<Outcome, Outcome> {
    let next_header = view.u8(0)?;
    let index = view.be16(2)?;
    let compressed = view.skip(HEADER_LEN)?;
    let known_other = index != DEFLATE && index < FIRST_NEGOTIATED;
    if known_other || walk.inflated || walk.quoted {
        return Ok(Outcome::NotTcp);
    }
    walk.inflated = true;
    let inflated = Inflated::read(compressed.bytes);
    let cut = compressed.bytes.len() < compressed.wire_len;
    let total_len = match inflated.total_len {
        Some(len) => len,
        None if !cut => return Ok(Outcome::NotTcp),
        // The end is not captured, but an inner IP header states its own length.
        None if matches!(next_header, IPV4 | IPV6) => MAX_INFLATED,
        None => return Ok(Outcome::HeaderCut),
    };
    let prefix = inflated.prefix.get(..inflated.prefix_len).unwrap_or(&[]);
    Ok(walk.descend(Layer::Transport(next_header), View::new(prefix, total_len)))
}

struct Inflated {
    prefix: [u8; PREFIX_LEN],
    prefix_len: usize,
    /// Known if the end of the stream was reached.
    total_len: Option<usize>,
}

impl Inflated {
    fn read(mut input: &[u8]) -> Self {
        let mut result = Inflated {
            prefix: [0; PREFIX_LEN],
            prefix_len: 0,
            total_len: None,
        };
        let mut stream = Decompress::new(false);
        let mut scratch = [0u8; 4096];
        let mut produced = 0;
        while produced < MAX_INFLATED {
            let (in_before, out_before) = (stream.total_in(), stream.total_out());
            let Ok(status) = stream.decompress(input, &mut scratch, FlushDecompress::None) else {
                break;
            };
            let read = usize::try_from(stream.total_in() - in_before).unwrap_or(usize::MAX);
            let written = usize::try_from(stream.total_out() - out_before).unwrap_or(usize::MAX);
            let output = scratch.get(..written).unwrap_or(&scratch);
            for (slot, byte) in result.prefix.iter_mut().skip(result.prefix_len).zip(output) {
                *slot = *byte;
            }
            produced += output.len();
            result.prefix_len = produced.min(PREFIX_LEN);
            if matches!(status, Status::StreamEnd) {
                result.total_len = Some(produced);
                break;
            }
            if read == 0 && written == 0 {
                break;
            }
            input = input.get(read..).unwrap_or(&[]);
        }
        result
    }
}
