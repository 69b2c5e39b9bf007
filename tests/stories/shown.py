"""What a finding's frames must show in tshark: one check for each rule that fires on reference captures.

Takes a finding, the analysis, and the capture as seen by tshark; returns complaints in words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from stories.opened import ACK, FIN, MODULO, RST, SYN, Opened, Segment, step

from tcpwin.analysis import Endpoint
from tcpwin.limits import Analysis, Connection, Finding

LEAST_TIMEOUT_NS = 150_000_000
"""A Linux timer takes at least 200 ms, a probe two round trips; anything sooner is triggered by an ACK."""
LONGEST_TIMER_NS = 120_000_000_000
"""Linux's longest timer: the longest silence in a capture that continues."""
SILENCES = ("TW504",)
"""Rules whose time is a silence that begins after the frames."""


@dataclass(frozen=True)
class Shown:
    """A finding with its packets, as read by tshark."""

    finding: Finding
    analysis: Analysis
    opened: Opened

    @cached_property
    def connection(self) -> Connection:
        assert self.finding.connection is not None
        return self.analysis.connections[self.finding.connection]

    @cached_property
    def all(self) -> list[Segment]:
        """Return the connection's segments."""
        return segments_of(self.opened, self.connection)

    @cached_property
    def frames(self) -> list[Segment]:
        """Return the evidence's frames."""
        ends = (endpoint(self.connection.a), endpoint(self.connection.b))
        return [self.opened.segment(frame, *ends) for frame in self.finding.evidence.frames]

    @cached_property
    def sender(self) -> str:
        return "a" if self.finding.direction == "a_to_b" else "b"

    @cached_property
    def receiver(self) -> str:
        return "b" if self.sender == "a" else "a"

    def side(self, segment: Segment) -> str:
        """Return the side, a or b, that sent a segment."""
        return "a" if segment.source == endpoint(self.connection.a) else "b"

    def value(self, name: str) -> int:
        """Return a value of the evidence."""
        return int(self.finding.evidence.values[name])

    def before(self, segment: Segment, side: str) -> list[Segment]:
        """Return a side's segments captured before one."""
        return [each for each in self.all if each.frame < segment.frame and self.side(each) == side]

    def copies(self, segment: Segment) -> list[Segment]:
        """Return earlier segments that contain bytes of it."""
        return [each for each in self.before(segment, self.side(segment)) if each.overlaps(segment)]


def endpoint(end: Endpoint) -> tuple[str, int]:
    """Address and port."""
    return (str(end.address), end.port)


def segments_of(opened: Opened, connection: Connection) -> list[Segment]:
    """Return a connection's segments as shown by tshark; for a reused port only those of its time."""
    found = opened.between(endpoint(connection.a), endpoint(connection.b))
    return [each for each in found if connection.start_ns <= each.time_ns <= connection.end_ns]


def belongs(shown: Shown) -> Iterator[str]:
    """Check that the frames exist, belong to the connection, and are within the given time."""
    finding, opened = shown.finding, shown.opened
    evidence = finding.evidence
    if len(evidence.frames) > 12 or len(set(evidence.frames)) != len(evidence.frames):
        yield f"{len(evidence.frames)} frames, {len(set(evidence.frames))} different"
    for frame in evidence.frames:
        if frame not in opened.rows:
            yield f"frame {frame} does not exist"
        elif finding.connection is not None and not opened.has(
            frame, endpoint(shown.connection.a), endpoint(shown.connection.b)
        ):
            yield f"frame {frame} is of another connection"
    if evidence.start_ns is None or evidence.end_ns is None or finding.connection is None:
        return
    if not shown.connection.start_ns <= evidence.start_ns <= evidence.end_ns:
        yield "the time is not the connection's"
    inside = [evidence.start_ns <= each.time_ns <= evidence.end_ns for each in shown.frames]
    if inside and not any(inside) and finding.code not in SILENCES:
        yield "no frame lies in the time that is given"


def zero_window_stall(shown: Shown) -> Iterator[str]:
    frames = shown.frames
    for closed, opened in zip(frames[::2], frames[1::2], strict=True):
        if shown.side(closed) != shown.receiver or closed.window:
            yield f"frame {closed.frame} does not close {shown.receiver}'s window"
        between = [s for s in shown.all if closed.frame < s.frame < opened.frame and shown.side(s) == shown.receiver]
        if any(each.window for each in between) or not (opened.window if shown.side(opened) == shown.receiver else 1):
            yield f"the window that frame {closed.frame} closed opens elsewhere than in frame {opened.frame}"
    if frames[1].time_ns - frames[0].time_ns != shown.value("longest_ns"):
        yield "the longest time is another"


def zero_window_dead(shown: Shown) -> Iterator[str]:
    closed, reset = shown.frames
    later = [each for each in shown.all if each.frame >= closed.frame]
    if any(each.window for each in later if shown.side(each) == shown.receiver):
        yield "the window opened"
    probes = [each for each in later if shown.side(each) == shown.sender and each.length]
    if len(probes) != shown.value("probes") or any(each.length != 1 for each in probes):
        yield f"{len(probes)} probes"
    if not reset.flags & RST or reset.time_ns - closed.time_ns != shown.value("closed_ns"):
        yield "no reset ends it, or at another time"


def window_shrunk(shown: Shown) -> Iterator[str]:
    data = shown.connection.a_to_b if shown.sender == "a" else shown.connection.b_to_a
    shift = data.window_scale.shift or 0
    for each in shown.frames:
        edges = [s.ack + (s.window << shift) for s in shown.before(each, shown.receiver) if s.flags & ACK]
        if not any(step(each.ack + (each.window << shift), edge) > 0 for edge in edges):
            yield f"frame {each.frame} takes no window back"


def sent_again(shown: Shown) -> Iterator[str]:
    """Each frame contains data sent before, or is the original of a later one."""
    again = [each for each in shown.frames if shown.copies(each)]
    if not again:
        yield "nothing was sent again"
    for each in shown.frames:
        if shown.side(each) != shown.sender:
            yield f"frame {each.frame} is of the other side"
        if each not in again and not any(later.overlaps(each) for later in again if later.frame > each.frame):
            yield f"frame {each.frame} is neither original nor sent again"


def timeouts(shown: Shown) -> Iterator[str]:
    yield from sent_again(shown)
    for each in shown.frames:
        if not (copies := shown.copies(each)):
            continue
        gap_ns = each.time_ns - copies[-1].time_ns
        if gap_ns < LEAST_TIMEOUT_NS:
            yield f"frame {each.frame} comes {gap_ns} ns after what it repeats"
        acked = [s for s in shown.before(each, shown.receiver) if s.flags & ACK and step(each.end, s.ack) >= 0]
        if acked:
            yield f"frame {acked[0].frame} had acknowledged what frame {each.frame} repeats"


def needless(shown: Shown) -> Iterator[str]:
    for each in shown.frames:
        if shown.side(each) == shown.sender:
            acks = [s.ack for s in shown.before(each, shown.receiver) if s.flags & ACK]
            told = [s for s in shown.all if s.frame > each.frame and shown.side(s) == shown.receiver and is_dsack(s)]
            is_told = any(
                step(low, each.end) > 0 and step(each.seq, high) > 0 for s in told for low, high in s.sack[:1]
            )
            if not (any(step(each.end, ack) >= 0 for ack in acks) or is_told):
                yield f"nothing shows that frame {each.frame} was needless"
            if not shown.copies(each):
                yield f"the bytes of frame {each.frame} were not sent before"
        elif not is_dsack(each):
            yield f"frame {each.frame} holds no DSACK"


def is_dsack(segment: Segment) -> bool:
    """The first block is below the ACK or within the second (RFC 2883 §4)."""
    if not segment.sack:
        return False
    low, high = segment.sack[0]
    within = len(segment.sack) > 1 and step(segment.sack[1][0], low) >= 0 and step(high, segment.sack[1][1]) >= 0
    return step(high, segment.ack) >= 0 or within


def handshake(shown: Shown) -> Iterator[str]:
    frames = shown.frames
    if len(frames) < 2 or any(not each.flags & SYN or shown.side(each) != shown.sender for each in frames):
        yield "no SYN was sent again"
    if any(each.seq != frames[0].seq for each in frames):
        yield "the SYNs differ"
    own = [s for s in shown.all if s.flags & SYN and shown.side(s) == shown.sender and s.time_ns <= _established(shown)]
    if own[-1].time_ns - own[0].time_ns != shown.finding.cost_ns:
        yield f"{own[-1].time_ns - own[0].time_ns} ns from the first to the last"


def _established(shown: Shown) -> int:
    return int(shown.connection.fields["established_ns"])


def paused(shown: Shown) -> Iterator[str]:
    """Between the frames of a pair the sender sends no data, and before the second everything was acknowledged."""
    for before, after in zip(shown.frames[::2], shown.frames[1::2], strict=True):
        own = [each for each in shown.before(after, shown.sender) if each.length]
        if after.frame <= before.frame or any(each.frame > before.frame for each in own):
            yield f"frames {before.frame} and {after.frame} are not the ends of a pause"
        acks = [each.ack for each in shown.before(after, shown.receiver) if each.flags & ACK]
        # The second frame may be the request that ends the pause, and carry the ACK.
        acks += [after.ack] if shown.side(after) == shown.receiver else []
        if own and step(_furthest([each.end for each in own]), _furthest(acks or [own[0].seq])) < 0:
            yield f"data was in flight before frame {after.frame}"


def aborted(shown: Shown) -> Iterator[str]:
    reset, *data = shown.frames
    if not reset.flags & RST or shown.side(reset) != shown.finding.evidence.values["reset_by"]:
        yield f"frame {reset.frame} resets nothing"
    if any(not each.length or shown.side(each) != shown.sender or each.frame > reset.frame for each in data):
        yield "the frames before the reset hold no data"
    if unacknowledged(shown)[shown.sender] != shown.value("unacknowledged_bytes"):
        yield f"{unacknowledged(shown)[shown.sender]} bytes were not acknowledged"


def unacknowledged(shown: Shown) -> dict[str, int]:
    """Return each side's bytes beyond the other's last ACK; a RST acknowledges nothing (RFC 9293 §3.10.7.1)."""
    found = {}
    for side, other in (("a", "b"), ("b", "a")):
        ends = [(s.seq + s.length) % MODULO for s in shown.all if shown.side(s) == side and s.length]
        acks = [s.ack for s in shown.all if shown.side(s) == other and s.flags & ACK and not s.flags & RST]
        found[side] = max(step(_furthest(acks), _furthest(ends)), 0) if ends and acks else 0
    return found


def _furthest(numbers: list[int]) -> int:
    furthest = numbers[0]
    for each in numbers:
        furthest = each if step(furthest, each) > 0 else furthest
    return furthest


def unanswered(shown: Shown) -> Iterator[str]:
    address, _, port = str(shown.finding.evidence.values["port"]).rpartition(":")
    there = (address.strip("[]"), int(port))
    for frame in shown.finding.evidence.frames:
        syn = shown.opened.segment(frame)
        addresses = set(shown.opened.rows[frame]["ip.dst"].split(",")) | {shown.opened.rows[frame]["ipv6.dst"]}
        if syn.flags & (SYN | ACK | RST) != SYN or syn.destination[1] != there[1] or there[0] not in addresses:
            yield f"frame {frame} is not a SYN to the port"
        others = [s for s in shown.opened.between((syn.source[0], syn.source[1]), there) if s.source == there]
        if any(each.flags & (SYN | RST) for each in others):
            yield f"frame {frame} was answered"


def peer_silent(shown: Shown) -> Iterator[str]:
    """Check that the frames are data and its retransmissions, that no ACK arrived, and time and both counts."""
    data, *again = shown.frames
    if any(shown.side(each) != shown.sender for each in shown.frames) or not data.takes:
        yield f"frame {data.frame} holds no data, or a frame is of the other side"
    start_ns, values = shown.finding.evidence.start_ns, shown.finding.evidence.values
    assert start_ns is not None
    later = [each for each in shown.all if each.time_ns >= start_ns]
    heard = [each for each in later if shown.side(each) == shown.receiver and each.frame > data.frame]
    for each in heard:
        if each.flags & ACK and not each.flags & RST and step(shown.frames[-1].end, each.ack) >= 0:
            yield f"frame {each.frame} acknowledges it"
    if values["stall_at_end"] == "peer_silent" and heard:
        yield f"frame {heard[0].frame} is an answer"
    for each in again:
        if not _sent_earlier(shown, each):
            yield f"frame {each.frame} sends nothing again"
    sent_again = [each for each in later if shown.side(each) == shown.sender and _sent_earlier(shown, each)]
    if len(sent_again) != shown.value("tries"):
        yield f"sent again {len(sent_again)} times, not {shown.value('tries')}"
    if unacknowledged(shown)[shown.sender] != shown.value("unacknowledged_bytes"):
        waiting = unacknowledged(shown)[shown.sender]
        yield f"{waiting} bytes were not acknowledged, not {shown.value('unacknowledged_bytes')}"
    resets = [each.time_ns for each in heard if each.flags & RST]
    last_ns = max(shown.opened.time_ns(frame) for frame in shown.opened.rows)
    end_ns = min([*resets, last_ns, shown.all[-1].time_ns + LONGEST_TIMER_NS])
    # Beyond the connection's last packet it lasts until the next timers at most.
    seen_ns = min([*resets, shown.all[-1].time_ns])
    if not seen_ns - start_ns <= shown.value("stall_at_end_ns") <= end_ns - start_ns:
        yield f"it lasted {end_ns - start_ns} ns"


def _sent_earlier(shown: Shown, segment: Segment) -> bool:
    """Return whether bytes of it were sent before; a copy at the same moment is the capture's."""
    return any(each.time_ns < segment.time_ns for each in shown.copies(segment))


def half_open(shown: Shown) -> Iterator[str]:
    closer = shown.finding.evidence.values["closed_first"]
    if not shown.frames or any(not each.flags & FIN or shown.side(each) != closer for each in shown.frames):
        yield "no FIN"
    if any(each.flags & (FIN | RST) for each in shown.all if shown.side(each) != closer):
        yield "the other side closed too"
    last_ns = max(shown.opened.time_ns(frame) for frame in shown.opened.rows)
    if last_ns - shown.all[-1].time_ns != shown.value("silent_ns"):
        yield "it was silent for another time"


def reset_after_close(shown: Shown) -> Iterator[str]:
    fins = [min((s.frame for s in shown.all if s.flags & FIN and shown.side(s) == side), default=None) for side in "ab"]
    if any(not each.flags & RST for each in shown.frames):
        yield "a frame is not an RST"
    if None in fins or max(each.frame for each in shown.frames) < max(fin for fin in fins if fin):
        yield "the RST comes before both FINs"
    lost, values = unacknowledged(shown), shown.finding.evidence.values
    told = values.get("most_unacknowledged_bytes", max(values.get(f"unacknowledged_{side}_bytes", 0) for side in "ab"))
    if max(lost.values()) != told:
        yield f"{max(lost.values())} bytes were never acknowledged, not {told}"


def drops(shown: Shown) -> Iterator[str]:
    for frame in shown.finding.evidence.frames:
        if not shown.opened.segment(frame).acks_unseen:
            yield f"frame {frame} acknowledges nothing that was not captured"
    missed = sum(_missed(shown, each) for each in shown.analysis.connections)
    if missed != shown.value("missed_bytes"):
        yield f"{missed} bytes were acknowledged that no frame holds, not {shown.value('missed_bytes')}"


def _missed(shown: Shown, connection: Connection) -> int:
    segments = segments_of(shown.opened, connection)
    return sum(_missed_of(segments, endpoint(end)) for end in (connection.a, connection.b))


def _missed_of(segments: list[Segment], own: tuple[str, int]) -> int:
    """Return sequence numbers from the first seen to the last acknowledged that no segment contains."""
    if len({each.source for each in segments}) < 2:
        return 0
    first = next(s.seq if s.source == own else s.ack for s in segments if s.source == own or s.flags & ACK)
    acks = [s.ack for s in segments if s.source != own and s.flags & ACK]
    if not acks:
        return 0
    top = step(first, _furthest([first, *acks]))
    spans = sorted((step(first, s.seq), step(first, s.seq) + s.takes) for s in segments if s.source == own and s.takes)
    missed, reached = 0, 0
    for low, high in [*spans, (top, top)]:
        missed += max(min(low, top) - reached, 0)
        reached = max(reached, min(high, top))
    return missed


def duplicates(shown: Shown) -> Iterator[str]:
    seen: dict[object, int] = {}
    copies = []
    for each in shown.opened.tcp:
        key = (
            each.source,
            each.destination,
            each.seq,
            each.ack,
            each.flags,
            each.length,
            each.window,
            each.ip_ids[-1:],
        )
        copies += [each.frame] if key in seen else []
        seen[key] = each.frame
    if not set(shown.finding.evidence.frames) <= set(copies):
        yield f"frames {sorted(set(shown.finding.evidence.frames) - set(copies))} copy none"
    if len(copies) != shown.value("capture_duplicates"):
        yield f"{len(copies)} copies"


def offload(shown: Shown) -> Iterator[str]:
    largest = max(each.length for each in shown.opened.tcp)
    if largest != shown.value("max_payload_bytes"):
        yield f"the largest segment has {largest} bytes"
    if any(shown.opened.segment(frame).length <= shown.value("mss_bytes") for frame in shown.finding.evidence.frames):
        yield "a frame holds no more than a segment"


def one_way(shown: Shown) -> Iterator[str]:
    for frame in shown.finding.evidence.frames:
        one = shown.opened.segment(frame)
        both = list(shown.opened.between(one.source, one.destination))
        if {each.source for each in both} != {one.source} or both[0].frame != frame:
            yield f"both sides of frame {frame}'s connection were captured, or it is not the first"


def cut_short(shown: Shown) -> Iterator[str]:
    values, rows = shown.finding.evidence.values, shown.opened.rows
    if "byte_offset" in values:
        if "cut short" not in shown.opened.complaints or values["packets"] != len(rows):
            yield f"tshark reads {len(rows)} packets: {shown.opened.complaints}"
        return
    cut = [frame for frame, row in rows.items() if int(row["frame.cap_len"]) < int(row["frame.len"])]
    if len(cut) < shown.value("options_cut") + shown.value("header_cut"):
        yield f"{len(cut)} frames were cut"


def backwards(shown: Shown) -> Iterator[str]:
    times = [shown.opened.time_ns(frame) for frame in sorted(shown.opened.rows)]
    count = sum(second < first for first, second in pairwise(times))
    if count != shown.value("time_backwards"):
        yield f"{count} times"


def no_handshake(shown: Shown) -> Iterator[str]:
    for frame in shown.finding.evidence.frames:
        one = shown.opened.segment(frame)
        (own,) = [each for each in shown.analysis.connections if each.first_frame == frame]
        if any(each.flags & SYN for each in segments_of(shown.opened, own)) or one.flags & SYN:
            yield f"the connection of frame {frame} has a SYN"


def held_twice(shown: Shown) -> Iterator[str]:
    """Each frame is a SYN that appeared in the capture before, within the stated time."""
    for each in shown.frames:
        same = [s for s in shown.all if s.flags & SYN and s.seq == each.seq and shown.side(s) == shown.side(each)]
        if not each.flags & SYN or len(same) < 2:
            yield f"frame {each.frame} is not a repeated SYN"
        elif same[1].time_ns - same[0].time_ns > shown.finding.evidence.values["copied_after_ns"]:
            yield f"frame {each.frame} comes later"


CHECKS: dict[str, Callable[[Shown], Iterator[str]]] = {
    "TW201": zero_window_stall,
    "TW203": zero_window_dead,
    "TW205": window_shrunk,
    "TW301": timeouts,
    "TW302": timeouts,
    "TW303": needless,
    "TW304": sent_again,
    "TW305": handshake,
    "TW307": sent_again,
    "TW402": paused,
    "TW501": aborted,
    "TW503": unanswered,
    "TW504": half_open,
    "TW505": reset_after_close,
    "TW506": peer_silent,
    "TW601": drops,
    "TW602": duplicates,
    "TW603": offload,
    "TW604": one_way,
    "TW605": cut_short,
    "TW606": backwards,
    "TW607": no_handshake,
    "TW610": held_twice,
}
