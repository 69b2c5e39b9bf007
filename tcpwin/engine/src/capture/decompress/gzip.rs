//! gzip (RFC 1952): concatenated members, inflated directly into the caller's buffer.
//! Data decoded before a damaged part is returned before the error.

use std::io::{self, BufRead, Read};

use flate2::{Decompress, FlushDecompress, Status};

use super::input::{damaged, Input};

/// The inflater handles each member's header and checksum.
pub(super) struct Gzip {
    input: Input,
    /// `None` between members and after the end.
    member: Option<Decompress>,
    members: u64,
    consumed: u64,
    /// An error found by the previous call after it had produced valid bytes.
    pending: Option<io::Error>,
    failed: bool,
}

impl Gzip {
    pub(super) fn new(input: Input) -> Self {
        Self {
            input,
            member: None,
            members: 0,
            consumed: 0,
            pending: None,
            failed: false,
        }
    }

    fn fail(&mut self, what: &str) -> io::Error {
        self.failed = true;
        damaged(format!(
            "the gzip stream {what} at compressed byte {}",
            self.consumed
        ))
    }
}

impl Read for Gzip {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = self.pending.take() {
            return Err(error);
        }
        if self.failed || out.is_empty() {
            return Ok(0);
        }
        loop {
            let input = self.input.fill_buf()?;
            let first = input.first().copied();
            if self.member.is_none() {
                let Some(first) = first else {
                    return Ok(0);
                };
                // Like gzip(1), ignore zeros that pad the file to a tape block: they are not a member.
                if self.members > 0 && first == 0 {
                    let zeros = input.iter().take_while(|&&b| b == 0).count();
                    self.input.consume(zeros);
                    self.consumed += zeros as u64;
                    continue;
                }
                self.member = Some(Decompress::new_gzip(15));
                self.members += 1;
            }
            let Some(member) = self.member.as_mut() else {
                return Ok(0);
            };
            let (in_before, out_before) = (member.total_in(), member.total_out());
            let status = member.decompress(input, out, FlushDecompress::None);
            let consumed = member.total_in() - in_before;
            let produced = (member.total_out() - out_before) as usize;
            let stuck = consumed == 0 && produced == 0;
            self.input.consume(consumed as usize);
            self.consumed += consumed;
            match status {
                Ok(Status::StreamEnd) => self.member = None,
                // Tried even without input: the rest of a match may be waiting for output space.
                Ok(_) if stuck && first.is_none() => return Err(self.fail("ends")),
                Ok(_) if stuck => return Err(self.fail("is damaged")),
                Ok(_) => {}
                // Output produced before the damage is valid.
                Err(_) if produced > 0 => self.pending = Some(self.fail("is damaged")),
                Err(_) => return Err(self.fail("is damaged")),
            }
            if produced > 0 {
                return Ok(produced);
            }
        }
    }
}
