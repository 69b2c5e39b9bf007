//! Copy packets of a capture, all or those of some connections, to pcapng, with comments that describe the findings at
//! each packet.
//!
//! Two readers read the capture in step: one feeds the tracker, which annotates each segment; the copier's follows up
//! to that frame. No packet has to be queued, so memory does not grow with the capture.

use std::collections::{HashSet, VecDeque};
use std::io::{self, Write};

use super::comment::{comment_of, Words};
use super::headers::header_len;
use super::series::Span;
use crate::capture::{MergedReader, Rewriter, Whole};
use crate::output::pass::Sink;
use crate::tcp::connection::state::Connection;
use crate::tcp::tracker::Annotation;
use crate::wire::{Segment, SYN};

/// Number of copied frames whose new numbers are remembered; comments rarely refer further back.
const RENUMBERED: usize = 1 << 20;
const HANDSHAKE_SEGMENTS: u64 = 3;

/// The packets to copy.
pub enum Choice {
    /// All packets within the span.
    All,
    /// The handshakes of these connections and their packets within the span, and frames with fragments of their
    /// segments.
    Connections { ids: HashSet<u32>, parts: Vec<u64> },
    /// These frames, in ascending order.
    Frames(Vec<u64>),
}

/// Notes to add to the comments.
pub struct Notes {
    pub words: Words,
    pub texts: Vec<String>,
    /// Frames in ascending order, each with the index of a text.
    pub marks: Vec<(u64, u32)>,
}

/// Counts of the copied packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    pub packets: u64,
    pub packets_cut: u64,
    /// Packets with a comment added here.
    pub packets_commented: u64,
    /// Frames that could not be copied because their interface is not described.
    pub skipped: u64,
}

pub struct CopyRequest {
    pub choice: Choice,
    pub span: Span,
    /// Whether to omit the payload.
    pub is_cut: bool,
    /// None for no comments.
    pub notes: Option<Notes>,
}

/// The sink that copies packets.
pub struct Copier<W: Write, V> {
    input: MergedReader,
    copy: Copy<W, V>,
    pub error: Option<io::Error>,
}

/// The tracker's results for the segment whose frame is copied.
struct Found<'a> {
    frame: u64,
    is_wanted: bool,
    annotation: &'a Annotation,
}

struct Copy<W: Write, V> {
    out: Rewriter<W>,
    request: CopyRequest,
    /// Number of chosen frames passed so far.
    passed: usize,
    /// Number of marks passed so far.
    marked: usize,
    /// Describes a connection's limit in one line.
    verdict: V,
    /// Connections whose verdict has been written.
    reported: HashSet<u32>,
    /// The latest copied frames, if their numbers change.
    renumbered: Option<VecDeque<u64>>,
    frame: u64,
    last_ns: i64,
    copied: Copied,
}

impl<W: Write, V: FnMut(u32) -> Option<String>> Copier<W, V> {
    pub fn new(
        mut input: MergedReader,
        out: Rewriter<W>,
        request: CopyRequest,
        verdict: V,
    ) -> Self {
        input.keep_metadata();
        let is_whole =
            matches!(request.choice, Choice::All) && request.span.is_all() && !input.is_selective();
        let copy = Copy {
            out,
            request,
            passed: 0,
            marked: 0,
            verdict,
            reported: HashSet::new(),
            renumbered: (!is_whole).then(VecDeque::new),
            frame: 0,
            last_ns: 0,
            copied: Copied::default(),
        };
        Copier {
            input,
            copy,
            error: None,
        }
    }

    /// Copy the packets after the last segment.
    pub fn finish(mut self) -> io::Result<Copied> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        while self.step(None)? {}
        for (source, metadata) in self.input.take_rest() {
            self.copy.out.metadata(source, &metadata)?;
        }
        self.copy.out.finish()?;
        let facts = self.input.facts();
        self.copy.copied.skipped = facts.iter().map(|facts| facts.packets_skipped).sum();
        Ok(self.copy.copied)
    }

    /// Read the next packet and copy it if it is selected; false at the end.
    fn step(&mut self, found: Option<&Found<'_>>) -> io::Result<bool> {
        match self.input.next_whole() {
            Some(whole) => self.copy.take(&whole, found).map(|()| true),
            None => Ok(false),
        }
    }

    fn copy_to(&mut self, found: &Found<'_>) -> io::Result<()> {
        while self.copy.frame < found.frame && self.step(Some(found))? {}
        Ok(())
    }
}

impl<W: Write, V: FnMut(u32) -> Option<String>> Sink for Copier<W, V> {
    fn take(
        &mut self,
        segment: &Segment,
        annotation: &Annotation,
        connection: &Connection,
    ) -> bool {
        let request = &self.copy.request;
        let is_wanted = match &request.choice {
            Choice::Connections { ids, .. } => {
                let is_within = request.span.contains(segment.time_ns);
                ids.contains(&annotation.connection)
                    && (is_within || is_of_handshake(segment, connection))
            }
            Choice::All | Choice::Frames(_) => false,
        };
        let found = Found {
            frame: segment.frame,
            is_wanted,
            annotation,
        };
        let copied = self.copy_to(&found);
        self.error = copied.err();
        self.error.is_none()
    }
}

/// Return true for a segment of the handshake, which carries the window scales.
fn is_of_handshake(segment: &Segment, connection: &Connection) -> bool {
    let [first, second] = &connection.directions;
    let is_early = u64::from(first.segments) + u64::from(second.segments) <= HANDSHAKE_SEGMENTS;
    segment.flags & SYN != 0 || (is_early && (first.has_syn || second.has_syn))
}

impl<W: Write, V: FnMut(u32) -> Option<String>> Copy<W, V> {
    fn take(&mut self, whole: &Whole<'_>, found: Option<&Found<'_>>) -> io::Result<()> {
        self.out.metadata(whole.source, &whole.metadata)?;
        let packet = &whole.packet;
        self.frame = packet.frame;
        self.last_ns = packet.time_ns.unwrap_or(self.last_ns);
        let found = found.filter(|found| found.frame == packet.frame);
        let is_wanted = match &self.request.choice {
            Choice::All => self.request.span.contains(self.last_ns),
            Choice::Connections { parts, .. } => {
                let is_part = contains_frame(parts, &mut self.passed, packet.frame);
                is_part || found.is_some_and(|found| found.is_wanted)
            }
            Choice::Frames(frames) => contains_frame(frames, &mut self.passed, packet.frame),
        };
        if !is_wanted {
            return Ok(());
        }
        let comments = self.comments(found);
        let captured_len = if self.request.is_cut {
            header_len(packet)
        } else {
            packet.captured.len()
        };
        self.out
            .packet(whole, captured_len, self.last_ns, &comments)?;
        self.copied.packets += 1;
        self.copied.packets_cut += u64::from(captured_len < packet.captured.len());
        self.copied.packets_commented += u64::from(!comments.is_empty());
        if let Some(frames) = &mut self.renumbered {
            if frames.len() >= RENUMBERED {
                frames.pop_front();
            }
            frames.push_back(packet.frame);
        }
        Ok(())
    }

    /// Return the comments for the frame being copied.
    fn comments(&mut self, found: Option<&Found<'_>>) -> Vec<String> {
        let Some(notes) = &self.request.notes else {
            return Vec::new();
        };
        let mut comments = Vec::new();
        let connection = found.map(|found| found.annotation.connection);
        if let Some(connection) = connection.filter(|number| self.reported.insert(*number)) {
            comments.extend((self.verdict)(connection));
        }
        while let Some((frame, place)) = notes.marks.get(self.marked) {
            if *frame > self.frame {
                break;
            }
            if *frame == self.frame {
                comments.extend(notes.texts.get(*place as usize).cloned());
            }
            self.marked += 1;
        }
        comments.extend(found.and_then(|found| {
            comment_of(&notes.words, found.annotation, |frame| self.name(frame))
        }));
        if self.renumbered.is_some() {
            if let Some(first) = comments.first_mut() {
                first.push_str(&format!(" [frame {} of the capture]", self.frame));
            }
        }
        comments
    }

    /// Return the name of an earlier frame, using its number in the new file.
    fn name(&self, frame: u64) -> String {
        let Some(frames) = &self.renumbered else {
            return format!("frame {frame}");
        };
        match frames.binary_search(&frame) {
            Ok(place) => {
                let before = self.copied.packets - frames.len() as u64;
                format!("frame {}", before + place as u64 + 1)
            }
            Err(_) => format!("frame {frame} of the capture"),
        }
    }
}

/// Return true if `frame` is in the sorted list, of which `passed` entries precede it.
fn contains_frame(frames: &[u64], passed: &mut usize, frame: u64) -> bool {
    while frames.get(*passed).is_some_and(|next| *next < frame) {
        *passed += 1;
    }
    frames.get(*passed) == Some(&frame)
}
