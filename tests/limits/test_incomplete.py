"""Verdicts on incomplete captures of the lab's runs name the same limit, or say that it is unknown.

The acceptable verdicts follow from what each kind of incompleteness hides:

- Half of each exchange (`BLIND`) shows no flight together with its window: no limit.
- Without a SYN/ACK, or without every 50th packet, everything a sender waits for is still visible: the same limit. A
  capture that lacks 2 % of the data is never certain.
- Without a's SYN, or all options (`UNSCALED`), a's windows have no scale (RFC 7323 §2.2). It is inferred from flights
  that filled the windows, so late or only in part: an open window is at most possible, and another cause with at least
  half of its time may come first. A closed window is closed at every scale, and in the run without scaling the SYN/ACK
  alone shows that there is none.
- Without both SYNs there is no MSS (`NO_MSS`). Full segments show it, unless the host's offload merged them: then it is
  unknown whether a sender had more to send.
- The second half alone does not show what limited the first: the limit is that of the second half of the whole capture.

Hidden facts never make another limit likely or certain. If the packets still show the limit at the sender, it must be
named.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from lab.selection import COPIES, CUT_COPIES, ENDS, SCENARIOS
from reference import LAB_RUNS
from spread import some_by_day
from stories import incomplete
from stories.lab_table import RUNS

import tcpwin
from tcpwin.limits import GROUPS, Connection, Verdict
from tcpwin.limits.roles import main_direction
from tcpwin.limits.verdict import judge_connection

CAPTURES = Path(__file__).resolve().parents[2] / "captures" / "lab"
BLIND = ("data only", "ACKs only")
"""Half of each exchange shows nothing about a flight."""
UNSCALED = ("without SYN", "without SYNs", "second half", "options cut")
"""The window scale is unknown; in the run without scaling the SYN/ACK alone still shows it."""
BESIDE_RECEIVER = ("without SYN/ACK", "every 50th dropped")
"""Judged there as well. Without the handshake, timestamps show the distance to the sender, but late."""
NO_MSS = ("without SYNs", "second half", "options cut")
CLOSES = ("zero_window_stall5s",)
"""Runs in which most of the window's cost occurs while it is closed."""
PLAIN = ("no_wscale_85ms",)
MERGED = ("offload_on_bigframes",)
LIMITS_OF = {
    "handshake": {"handshake"},
    "receiver": {"receiver_window", "receiver_application"},
    "congestion window": {"congestion_control"},
    "loss": {"path_loss"},
    "idle restart": {"idle_restart"},
    "application": {"sender_application"},
    "send buffer": {"send_buffer"},
    "path": {"path_rate"},
    "unknown": {"capture"},
}
"""The limits to which a group's time may belong."""
CLOSE = 0.1
"""Shares this close may swap places: rounds are coarse."""
NEAR = 0.5
"""Share of the window's time above which another, larger cause may come first."""


@dataclass(frozen=True)
class Whole:
    """Budget of the largest connection in the whole capture: nanoseconds by group, in total and in its second half."""

    groups_ns: Mapping[str, int]
    second_half_ns: Mapping[str, int]


def read_whole(path: Path, capture: incomplete.Capture) -> Whole:
    connection = max(tcpwin.analyze(path).connections, key=_bytes)
    middle = capture.records[len(capture.records) // 2].head
    seconds, fraction = struct.unpack_from("<II", middle)
    per_second = 10**9 if capture.header[:4] == b"\x4d\x3c\xb2\xa1" else 10**6
    start_ns = seconds * 10**9 + fraction * (10**9 // per_second)
    name = main_direction(connection)
    assert name is not None
    spent = connection.view(start_ns, connection.end_ns).budget(direction=name).spent_ns
    half = {group: sum(int(spent[item].sum()) for item in items) for group, items in GROUPS.items()}
    return Whole({group: connection.budget[name].groups_ns[group] for group in GROUPS}, half)


def causes(scenario: str, end: str, way: str, whole: Whole) -> set[str]:
    """Return the acceptable causes: the true one, and its substitutes if it is hidden."""
    if way in BLIND:
        return LIMITS_OF["unknown"]
    row = RUNS[scenario]
    cause = row.departs.get((end, False), (row.item, row.group, ""))[1]
    groups = dict(whole.second_half_ns if way == "second half" else whole.groups_ns)
    del groups["closed"]
    order = sorted(groups, key=lambda group: -groups[group])
    # The main limit need not be the group with the most time.
    told = {cause, next(group for group, items in GROUPS.items() if row.item in items)}
    if way == "second half":
        told = {group for group in order if groups[group] >= (1 - CLOSE) * groups[order[0]]}
    if way in UNSCALED and "receiver" in told and scenario not in CLOSES:
        told |= {"unknown"} | {group for group in order if groups[group] >= NEAR * groups["receiver"]}
    if way in NO_MSS and scenario in MERGED:
        told.add("unknown")
    return {limit for group in told for limit in LIMITS_OF[group]}


def judged(folder: Path, capture: incomplete.Capture, way: str) -> tuple[Verdict, Verdict]:
    """Return the verdicts on the largest connection, by its budget alone and with findings."""
    path = folder / "incomplete.pcap"
    path.write_bytes(incomplete.incomplete(capture, way))
    analysis = tcpwin.analyze(path)
    connection = max(analysis.connections, key=_bytes)
    assert isinstance(connection, Connection)
    return judge_connection(connection), connection.verdict


def _bytes(connection: tcpwin.Connection) -> int:
    name = main_direction(connection)
    if name is None:
        return 0
    data = connection.a_to_b if name == "a_to_b" else connection.b_to_a
    return max(data.unique_bytes, data.acked_bytes)


def expect(scenario: str, end: str, way: str, verdict: Verdict, may: set[str]) -> None:
    told = (scenario, end, way, verdict.text, may)
    is_beside_sender = end == "snd" or way in (*BESIDE_RECEIVER, *BLIND)
    if is_beside_sender:
        assert {verdict.limit, verdict.second_limit, verdict.also} & may, told
    assert verdict.limit in {*may, "capture"} or verdict.confidence == "possible", told
    is_scale_told = scenario in CLOSES or (scenario in PLAIN and way == "without SYN")
    if (way in UNSCALED and not is_scale_told) or way == "every 50th dropped":
        assert verdict.confidence != "certain", told


def expect_all(folder: Path, path: Path, scenario: str, end: str) -> None:
    capture = incomplete.read(path)
    whole = read_whole(path, capture)
    for way in incomplete.WAYS:
        may = causes(scenario, end, way, whole)
        for verdict in judged(folder, capture, way):
            expect(scenario, end, way, verdict, may)


@pytest.mark.parametrize(
    ("scenario", "end", "copy"),
    # All but the truncated ones contain the packets of a run, which the next test uses.
    [pytest.param(*each, marks=() if each[2] in CUT_COPIES else pytest.mark.nightly) for each in COPIES],
    ids=[copy for _, _, copy in COPIES],
)
def test_the_projects_captures(tmp_path: Path, scenario: str, end: str, copy: str) -> None:
    expect_all(tmp_path, CAPTURES / f"{copy}.pcap.gz", scenario, end)


@pytest.mark.parametrize(
    ("scenario", "end"),
    # By day each run at one end, the next run at the other.
    some_by_day(((each, end) for place, each in enumerate(SCENARIOS) for end in ENDS[:: 1 - place % 2 * 2]), of=20),
)
def test_the_labs_captures(tmp_path: Path, scenario: str, end: str) -> None:
    expect_all(tmp_path, LAB_RUNS / scenario / f"{end}.pcap.gz", scenario, end)


def test_nothing_is_lost_by_the_helper(tmp_path: Path) -> None:
    path = CAPTURES / "cooked-any.pcap.gz"
    whole = incomplete.read(path)
    assert len(whole.records) == 5540
    assert sum(not record.flags & incomplete.SYN for record in whole.records) == 5538
    for way, packets in {"without SYN": 5539, "without SYNs": 5538, "second half": 2770, "options cut": 5540}.items():
        (tmp_path / "x.pcap").write_bytes(incomplete.incomplete(whole, way))
        assert tcpwin.analyze(tmp_path / "x.pcap").capture.packets == packets
