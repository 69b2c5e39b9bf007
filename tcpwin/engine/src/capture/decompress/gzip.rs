//! gzip (RFC 1952): members one after the other, inflated straight into the caller's buffer.
//! All that comes out before a damage is handed on before the error.

use std::io::{self, BufRead, Read};

use flate2::{Decompress, FlushDecompress, Status};

use super::input::{damaged, Input};

/// Header and checksum of each are the inflater's work.
pub(super) struct Gzip {
    input: Input,
    /// `None` between members and after the end.
    member: Option<Decompress>,
    members: u64,
    consumed: u64,
    /// Met in the call before, after good bytes.
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
                // As gzip(1): zeros that pad the file to a tape block are no member.
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
            let taken = member.total_in() - in_before;
            let produced = (member.total_out() - out_before) as usize;
            let stuck = taken == 0 && produced == 0;
            self.input.consume(taken as usize);
            self.consumed += taken;
            match status {
                Ok(Status::StreamEnd) => self.member = None,
                // Tried even without input: part of a match may wait for room.
                Ok(_) if stuck && first.is_none() => return Err(self.fail("ends")),
                Ok(_) if stuck => return Err(self.fail("is damaged")),
                Ok(_) => {}
                // What came out before the damage is good.
                Err(_) if produced > 0 => self.pending = Some(self.fail("is damaged")),
                Err(_) => return Err(self.fail("is damaged")),
            }
            if produced > 0 {
                return Ok(produced);
            }
        }
    }
}
