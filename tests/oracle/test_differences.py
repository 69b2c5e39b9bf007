"""Every difference from tshark 4.0 is of a known kind, and each kind has a ladder that shows it without the
captures.

The packets behind each kind are told in test_flight_kinds.py and test_window_kinds.py.
"""

from __future__ import annotations

import gzip
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import ladder
import pytest
from oracle import kinds
from oracle.books import keep_books
from oracle.compare import EVENTS, TABLE, Comparison, compare
from oracle.kinds import explain
from oracle.tshark_list import count_all

LADDERS = {path.stem: path for path in (Path(__file__).parent / "ladders").glob("*.ladder")}
# Kind: its ladder, the frame in which it shows, tshark's value there.
SHOWN: dict[str, tuple[str, int, int | bool | None]] = {
    kinds.ONE_WAY: ("one-way", 3, 419),
    kinds.NOTHING_ACKED: ("nothing-acknowledged-yet", 1, 517),
    kinds.SENT_IS_UNKNOWN: ("acknowledged-and-never-captured", 6, 93),
    kinds.LAST_BLOCKS: ("blocks-not-repeated", 11, 5840),
    kinds.FOURTH_BLOCK: ("fourth-block", 13, 6000),
    kinds.DUPLICATE_SACK: ("sent-again-and-d-sack", 9, 1000),
    kinds.STRAY_BLOCK: ("block-beyond-everything", 5, 1419),
    kinds.NEVER_CAPTURED: ("bytes-never-captured", 8, 1460),
    kinds.ACKED_AGAIN: ("sent-again-and-d-sack", 6, 1460),
    kinds.FIN_IS_A_BYTE: ("fin-in-flight", 6, 873),
    kinds.CLEARED: ("ack-no-window-allows", 6, 1000),
    kinds.SILENT: ("bytes-never-captured", 6, None),
    kinds.BLOCKS_EXCEED: ("sent-again-and-d-sack", 8, None),
    kinds.SCALE_REVIVED: ("handshake-captured-twice", 6, 256_960),
    kinds.CARRIES_SACK: ("duplicate-ack-with-sack", 6, True),
    kinds.AFTER_AN_OLD_ACK: ("update-after-an-old-ack", 8, False),
}
PREFERENCES = ("tcp.desegment_tcp_streams:FALSE", "tcp.relative_sequence_numbers:FALSE")
COLUMNS = (
    *("frame.number", "frame.protocols", "ip.src", "ipv6.src", "ip.dst", "ipv6.dst", "ip.id"),
    *("tcp.stream", "tcp.srcport", "tcp.dstport", "tcp.seq_raw", "tcp.ack_raw", "tcp.len", "tcp.flags"),
    *("tcp.window_size_value", "tcp.window_size", "tcp.window_size_scalefactor", "tcp.options.wscale.shift"),
    *("tcp.options.sack_le", "tcp.options.sack_re", "tcp.analysis.bytes_in_flight"),
    *("tcp.options.timestamp.tsval", "tcp.options.timestamp.tsecr"),
    *(f"tcp.analysis.{event}" for event in EVENTS),
)


def test_every_difference_is_of_a_known_kind(comparisons: list[Comparison]) -> None:
    unexplained = [
        (comparison.name, difference)
        for comparison in comparisons
        for difference, found in explain(comparison)
        if not found
    ]
    assert unexplained == []


def test_every_kind_occurs(comparisons: list[Comparison]) -> None:
    counts = Counter(kind for one in comparisons for _, found in explain(one) for kind in found)
    assert set(counts) == set(kinds.ALL)


def test_flight_and_pipe_are_what_the_senders_books_say(comparisons: list[Comparison]) -> None:
    """Not only where tshark says otherwise: on every segment with data."""
    differences, seen = [], 0
    for comparison in comparisons:
        for frame, flight in keep_books(comparison.segments).items():
            row = comparison.rows[frame]
            seen += flight.outstanding is not None
            if (row["bytes_in_flight"], row["pipe"]) != (flight.outstanding, flight.pipe):
                differences.append((comparison.name, frame, flight, row["bytes_in_flight"], row["pipe"]))
    assert differences == []
    assert seen > 23_000


def test_tsharks_reckoning_is_understood(comparisons: list[Comparison]) -> None:
    """The kinds rest on tshark_list.py: it must give each number that tshark gave, also where nobody differs."""
    differences, seen = [], 0
    for comparison in comparisons:
        counts = count_all(comparison.segments)
        for segment in comparison.segments:
            if segment.bytes_in_flight is not None:
                seen += 1
                if counts[segment.frame].bytes_in_flight != segment.bytes_in_flight:
                    differences.append((comparison.name, segment, counts[segment.frame]))
    assert differences == []
    assert seen > 23_000


@pytest.mark.parametrize("name", sorted(LADDERS))
def test_ladder_holds(name: str, tmp_path: Path) -> None:
    ladder.check(ladder.parse(LADDERS[name].read_text(encoding="utf8"), name), tmp_path)


def test_every_kind_has_a_ladder() -> None:
    assert set(SHOWN) == set(kinds.ALL)
    assert {name for name, _, _ in SHOWN.values()} <= set(LADDERS)


@pytest.mark.parametrize("kind", SHOWN)
def test_ladder_shows_its_kind(kind: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    """tshark says of the ladder's packets what the ladder's text says it does, and the program names the kind."""
    name, frame, theirs = SHOWN[kind]
    tshark = tool("tshark")
    version = subprocess.run([tshark, "--version"], check=True, capture_output=True, text=True).stdout
    if "TShark (Wireshark) 4.0." not in version:
        return  # another version reckons in another way, and proves nothing about this one
    capture = tmp_path / f"{name}.pcap"
    ladder.parse(LADDERS[name].read_text(encoding="utf8"), name).write_pcap(capture)
    comparison = compare(name, capture, write_table(tshark, capture), set())
    found = {
        difference.theirs for difference, names in explain(comparison) if difference.frame == frame and kind in names
    }
    assert found == {theirs}


def write_table(tshark: str, capture: Path) -> Path:
    """Have tshark write a capture's table, as those of the reference captures are."""
    command = [tshark, "-n", "-r", str(capture), "-T", "fields", "-E", "header=y"]
    command += [word for name in COLUMNS for word in ("-e", name)]
    command += [word for preference in PREFERENCES for word in ("-o", preference)]
    table = capture.with_name(capture.name + TABLE)
    table.write_bytes(gzip.compress(subprocess.run(command, check=True, capture_output=True).stdout))
    return table
