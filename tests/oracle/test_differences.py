"""Every difference from tshark 4.0 has a known kind, and each kind has a ladder that shows it.

The packets behind each kind are described in test_flight_kinds.py, test_window_kinds.py, test_loss_kinds.py and
test_order_kinds.py.
"""

from __future__ import annotations

import gzip
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import ladder
import pytest
from oracle import kinds, loss_kinds
from oracle.books import keep_books
from oracle.compare import EVENTS, RESENT, TABLE, Comparison, compare, events_of
from oracle.kinds import explain
from oracle.tshark_events import flag_all
from oracle.tshark_list import count_all
from spread import some_by_day

LADDERS = {path.stem: path for path in (Path(__file__).parent / "ladders").glob("*.ladder")}
FLIGHT, UPDATE = "bytes_in_flight", "window_update"
# Kind: its ladder, frame and field, and tshark's value there.
SHOWN: dict[str, tuple[str, int, str, int | bool | None]] = {
    kinds.ONE_WAY: ("one-way", 3, FLIGHT, 419),
    kinds.NOTHING_ACKED: ("nothing-acknowledged-yet", 1, FLIGHT, 517),
    kinds.SENT_IS_UNKNOWN: ("acknowledged-and-never-captured", 6, FLIGHT, 93),
    kinds.LAST_BLOCKS: ("blocks-not-repeated", 11, FLIGHT, 5840),
    kinds.FOURTH_BLOCK: ("fourth-block", 13, FLIGHT, 6000),
    kinds.DUPLICATE_SACK: ("sent-again-and-d-sack", 9, FLIGHT, 1000),
    kinds.STRAY_BLOCK: ("block-beyond-everything", 5, FLIGHT, 1419),
    kinds.NEVER_CAPTURED: ("bytes-never-captured", 8, FLIGHT, 1460),
    kinds.ACKED_AGAIN: ("sent-again-and-d-sack", 6, FLIGHT, 1460),
    kinds.FIN_IS_A_BYTE: ("fin-in-flight", 6, FLIGHT, 873),
    kinds.CLEARED: ("ack-no-window-allows", 6, FLIGHT, 1000),
    kinds.SILENT: ("bytes-never-captured", 6, FLIGHT, None),
    kinds.BLOCKS_EXCEED: ("sent-again-and-d-sack", 8, FLIGHT, None),
    kinds.SCALE_REVIVED: ("handshake-captured-twice", 6, "window", 256_960),
    kinds.AFTER_AN_OLD_ACK: ("update-after-an-old-ack", 8, UPDATE, False),
    loss_kinds.CARRIES_SACK: ("duplicate-ack-with-sack", 6, UPDATE, True),
    loss_kinds.NOTHING_OUTSTANDING: ("sent-again-and-d-sack", 7, "duplicate_ack", True),
    loss_kinds.CAPTURED_TWICE: ("captured-twice", 5, "resent", True),
    loss_kinds.SENT_LATER: ("sent-again-within-the-round-trip", 16, "out_of_order", True),
    loss_kinds.BELOW_ISN: ("below-the-initial-sequence-number", 2, "out_of_order", True),
    loss_kinds.OUTSIDE: ("further-than-any-window", 4, "previous_segment_missing", True),
    loss_kinds.IN_RECOVERY: ("second-hole-of-a-recovery", 19, "fast_retransmission", True),
    loss_kinds.BY_TIMER: ("timeout-among-duplicate-acks", 17, "fast_retransmission", True),
    loss_kinds.FEW_DUPLICATES: ("one-ack-with-sack", 9, "fast_retransmission", False),
    loss_kinds.LATE_ANSWER: ("captured-at-the-receiver", 10, "fast_retransmission", False),
    loss_kinds.LAST_ACK_IS_OLD: ("older-ack-comes-last", 8, "spurious_retransmission", False),
    loss_kinds.OTHER_ISN: ("answered-with-another-number", 3, "previous_segment_missing", True),
    loss_kinds.REPORTED_AGAIN: ("hole-acknowledged-once", 8, "acked_unseen", True),
    loss_kinds.NOT_REPORTED: ("two-holes-acknowledged", 5, "acked_unseen", False),
}
PREFERENCES = ("tcp.desegment_tcp_streams:FALSE", "tcp.relative_sequence_numbers:FALSE")
COLUMNS = (
    *("frame.number", "frame.time_epoch", "frame.protocols", "ip.src", "ipv6.src", "ip.dst", "ipv6.dst"),
    *("ip.id", "ip.ttl", "tcp.checksum", "tcp.analysis.initial_rtt"),
    *("tcp.stream", "tcp.srcport", "tcp.dstport", "tcp.seq_raw", "tcp.ack_raw", "tcp.len", "tcp.flags"),
    *("tcp.window_size_value", "tcp.window_size", "tcp.window_size_scalefactor", "tcp.options.wscale.shift"),
    *("tcp.options.sack_le", "tcp.options.sack_re", "tcp.analysis.bytes_in_flight"),
    *("tcp.options.timestamp.tsval", "tcp.options.timestamp.tsecr"),
    *(f"tcp.analysis.{theirs}" for theirs in EVENTS.values()),
)


def test_every_difference_is_of_a_known_kind(comparisons: list[Comparison]) -> None:
    unexplained = [
        (comparison.name, difference)
        for comparison in comparisons
        for difference, found in explain(comparison)
        if not found
    ]
    assert unexplained == []


def test_no_kind_excuses_the_opposite_where_both_agree(comparisons: list[Comparison]) -> None:
    """If tcpwin had the opposite of a loss or order label on which both agree, no kind would explain it."""
    excused = Counter[str]()
    seen = 0
    for comparison in comparisons:
        explainer = loss_kinds.LossExplainer(comparison)
        for segment in comparison.segments:
            ours = events_of(comparison.rows[segment.frame])
            for name in loss_kinds.EXPLAIN:
                if (name in ours) == (name in segment.events):
                    seen += 1
                    opposite = ours - RESENT - {"resent", name} if name in ours else ours | {name}
                    excused.update([name] if explainer.explain(name, segment.frame, opposite) else [])
    assert excused == Counter()
    assert seen > 7 * 42_000


def test_every_kind_occurs(every_comparison: list[Comparison]) -> None:
    counts = Counter(kind for one in every_comparison for _, found in explain(one) for kind in found)
    # An ACK that no window allows occurs only in a ladder: the captured one is among damaged numbers.
    assert {*counts, kinds.CLEARED} == set(kinds.ALL)


def test_flight_and_pipe_match_the_senders_books(comparisons: list[Comparison]) -> None:
    """Compares every segment with data, not only the differences."""
    differences, seen = [], 0
    for comparison in comparisons:
        for frame, flight in keep_books(comparison.segments).items():
            row = comparison.rows[frame]
            seen += flight.outstanding is not None
            if (row["bytes_in_flight"], row["pipe"]) != (flight.outstanding, flight.pipe):
                differences.append((comparison.name, frame, flight, row["bytes_in_flight"], row["pipe"]))
    assert differences == []
    assert seen > 23_000


def test_tsharks_reckoning_is_understood(every_comparison: list[Comparison]) -> None:
    """The kinds rest on tshark_list.py, which must give each of tshark's numbers, including those that agree."""
    differences, seen = [], 0
    for comparison in every_comparison:
        counts = count_all(comparison.segments)
        for segment in comparison.segments:
            if segment.bytes_in_flight is not None:
                seen += 1
                if counts[segment.frame].bytes_in_flight != segment.bytes_in_flight:
                    differences.append((comparison.name, segment, counts[segment.frame]))
    assert differences == []
    assert seen > 23_000


def test_tsharks_events_are_understood(every_comparison: list[Comparison]) -> None:
    """tshark_events.py must flag exactly what tshark flagged, on every segment."""
    reckoned = set(EVENTS) - {"zero_window", "window_full"}
    seen = Counter[str]()
    differences = []
    for comparison in every_comparison:
        opinions = flag_all(comparison.segments)
        for segment in comparison.segments:
            seen.update(segment.events)
            if opinions[segment.frame].events != segment.events & reckoned:
                differences.append((comparison.name, segment, opinions[segment.frame]))
    assert differences == []
    assert min(seen[event] for event in reckoned) >= 4


@pytest.mark.parametrize("name", sorted(LADDERS))
def test_ladder_holds(name: str, tmp_path: Path) -> None:
    ladder.check(ladder.parse(LADDERS[name].read_text(encoding="utf8"), name), tmp_path)


def test_every_kind_has_a_ladder() -> None:
    assert set(SHOWN) == set(kinds.ALL)
    assert {name for name, *_ in SHOWN.values()} <= set(LADDERS)


@pytest.mark.parametrize("kind", some_by_day(SHOWN, of=5))
def test_ladder_shows_its_kind(kind: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    """tshark reports for the ladder's packets what the ladder says, and the program names the kind."""
    name, frame, shown_in, theirs = SHOWN[kind]
    tshark = tool("tshark")
    version = subprocess.run([tshark, "--version"], check=True, capture_output=True, text=True).stdout
    if "TShark (Wireshark) 4.0." not in version:
        return  # another version calculates differently, and proves nothing about this one
    capture = tmp_path / f"{name}.pcap"
    ladder.parse(LADDERS[name].read_text(encoding="utf8"), name).write_pcap(capture)
    comparison = compare(name, capture, write_table(tshark, capture), set())
    found = [
        difference.theirs
        for difference, names in explain(comparison)
        if (difference.frame, difference.field) == (frame, shown_in) and kind in names
    ]
    assert found == [theirs]


def write_table(tshark: str, capture: Path) -> Path:
    """Have tshark write a capture's table, like those of the reference captures."""
    command = [tshark, "-n", "-r", str(capture), "-T", "fields", "-E", "header=y"]
    command += [word for name in COLUMNS for word in ("-e", name)]
    command += [word for preference in PREFERENCES for word in ("-o", preference)]
    table = capture.with_name(capture.name + TABLE)
    table.write_bytes(gzip.compress(subprocess.run(command, check=True, capture_output=True).stdout))
    return table
