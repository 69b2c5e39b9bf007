//! zstd (RFC 8878): concatenated frames; skippable ones are skipped.
//! Blocks before a damaged one are returned before the error.

use std::io::{self, BufRead, Read};

use ::zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::input::{damaged, Input};

/// Largest supported window: 128 MiB, the limit of `zstd -d` without `--long`.
const WINDOW_LOG_MAX: u32 = 27;

/// RFC 8878 §3.1.1.2.
const BLOCK_HEADER_BYTES: usize = 3;

pub(super) struct Zstd {
    input: Input,
    context: Decoder<'static>,
    /// Input size requested by the decoder: a block and, unless it is the last, the header of the next.
    hint: usize,
    in_frame: bool,
    /// Whether the last call filled the output: the decoder may hold more, which must be drained before the next block.
    unflushed: bool,
    consumed: u64,
    failed: bool,
}

impl Zstd {
    /// Size of the smallest frame header (RFC 8878 §3.1.1).
    const FIRST_HINT: usize = 5;

    pub(super) fn new(input: Input) -> io::Result<Self> {
        let mut context = Decoder::new()?;
        context.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX))?;
        Ok(Self {
            input,
            context,
            hint: Self::FIRST_HINT,
            in_frame: false,
            unflushed: false,
            consumed: 0,
            failed: false,
        })
    }

    fn fail(&mut self, what: &str) -> io::Error {
        self.failed = true;
        damaged(format!(
            "the zstd stream {what} at compressed byte {}",
            self.consumed
        ))
    }
}

impl Read for Zstd {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.failed || out.is_empty() {
            return Ok(0);
        }
        loop {
            let input = self.input.fill_buf()?;
            let ended = input.is_empty();
            if ended && !self.in_frame {
                return Ok(0);
            }
            let fed = if self.unflushed {
                &[]
            } else {
                // The decoder drops the output of a call that fails. Feeding one block per call, without the header
                // that follows it, loses only the damaged block.
                let block_bytes = self.hint.saturating_sub(BLOCK_HEADER_BYTES);
                let len = if block_bytes > 0 {
                    block_bytes
                } else {
                    self.hint
                };
                input.get(..len.max(1)).unwrap_or(input)
            };
            let mut source = InBuffer::around(fed);
            let mut target = OutBuffer::around(&mut *out);
            let status = self.context.run(&mut source, &mut target);
            let (consumed, produced) = (source.pos(), target.pos());
            self.input.consume(consumed);
            self.consumed += consumed as u64;
            match status {
                Ok(0) => {
                    self.in_frame = false;
                    self.hint = Self::FIRST_HINT;
                }
                Ok(hint) => {
                    self.in_frame = true;
                    self.hint = hint;
                }
                Err(error) => return Err(self.fail(&format!("is damaged ({error})"))),
            }
            let flushed = std::mem::replace(&mut self.unflushed, produced == out.len());
            if produced > 0 {
                return Ok(produced);
            }
            if flushed {
                continue;
            }
            if ended {
                return Err(self.fail("ends"));
            }
            if consumed == 0 {
                return Err(self.fail("is damaged"));
            }
        }
    }
}
