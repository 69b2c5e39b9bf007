"""Stalls in captures with known truth; tests/scenarios/stall-*.ladder has each cause and a near miss.

Checks causes, times and frames, and invariants of every stall.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cases import all_cases
from lab.runs import Run
from lab.selection import SCENARIOS, on

import tcpwin

ROOT = Path(__file__).parents[2]
CAPTURES = sorted(
    path for folder in ("lab", "wild") for path in (ROOT / "captures" / folder).iterdir() if path.suffix != ".toml"
)
MS = 1_000_000
PAUSES = {"handshake_delay", "response", "application", "idle"}
"""Causes in which nobody waited for the other side, the path or a timer."""
LEAST_NS = 200 * MS
"""Linux's shortest retransmission timeout: a shorter silence is not a stall."""


def assert_consistent(connection: tcpwin.Connection) -> None:
    """Check that the sums match the list, and that each stall is a silence between neighbouring rows of the table."""
    stalls = connection.stalls
    waits = [stall.duration_ns for stall in stalls if stall.cause not in PAUSES]
    pauses = [stall.duration_ns for stall in stalls if stall.cause in PAUSES]
    assert (connection.stall_count, connection.stall_ns) == (len(waits), sum(waits))
    assert connection.stall_longest_ns == max(waits, default=0)
    assert (connection.pause_count, connection.pause_ns) == (len(pauses), sum(pauses))
    table = dict(connection.segments().items())
    frames, times = table["frame"].tolist(), table["time_ns"].tolist()
    for stall in stalls:
        assert stall.duration_ns > LEAST_NS
        after = frames.index(stall.after_frame)
        assert times[after] == stall.end_ns
        assert frames[after - 1] == stall.before_frame
        assert times[after - 1] == stall.start_ns
        assert stall.sender in "ab"


@all_cases("path", CAPTURES, ids=lambda path: path.name)
def test_sums_and_frames_hold_on_every_capture(path: Path) -> None:
    for connection in tcpwin.analyze(path).connections:
        assert_consistent(connection)


@on(SCENARIOS, copies=False)
def test_sums_and_frames_hold_in_the_lab(run: Run) -> None:
    assert_consistent(run.connection)


def told(run: Run) -> list[tuple[str, str, int, int, int]]:
    """Return cause, sender, surrounding frames and whole milliseconds of each stall."""
    return [
        (stall.cause, stall.sender, stall.before_frame, stall.after_frame, round(stall.duration_ns / MS))
        for stall in run.connection.stalls
    ]


@on(["zero_window_stall5s"], ends=["snd"])
def test_a_reader_that_stalls_five_seconds(run: Run) -> None:
    """The window shrinks below a segment, then closes; the probe timer doubles: 0.3, 0.6 and 1.2 s."""
    assert told(run) == [
        ("window_full", "b", 13655, 13656, 290),
        ("zero_window", "b", 13657, 13658, 280),
        ("zero_window", "b", 13659, 13660, 550),
        ("zero_window", "b", 13661, 13662, 1160),
        ("zero_window", "b", 13663, 13664, 2033),
    ]
    closed = [stall for stall in run.connection.stalls if stall.cause == "zero_window"]
    # The silences add up to the episode minus the answers to the probes, one round trip of 40 ms each.
    assert run.data.zero_window_ns - sum(stall.duration_ns for stall in closed) == pytest.approx(
        3 * 40 * MS, abs=2 * MS
    )
    assert {(stall.flight_bytes, stall.window_bytes) for stall in closed} == {(0, 0)}


@on(["idle_restart_ssai1", "idle_restart_ssai0"], ends=["snd"])
def test_messages_two_seconds_apart(run: Run) -> None:
    """19 pauses of the application, then the close; an idle restart lasts a round trip and is not a stall."""
    stalls = run.connection.stalls
    assert [(stall.cause, stall.sender) for stall in stalls[:19]] == [("application", "b")] * 19
    assert {stall.cause for stall in stalls[19:]} <= PAUSES
    assert (run.connection.stall_count, run.connection.stall_ns) == (0, 0)
    # A message and its ACK take 361 ms with two flights, 182 ms with one.
    lengths = {round(stall.duration_ns / MS) for stall in stalls[1:19]}
    assert lengths == ({1639} if run.scenario == "idle_restart_ssai1" else {1818})


@on(["loss1_reno_sack0"], ends=["snd", "rcv"])
def test_the_timeouts_of_a_lossy_path(run: Run) -> None:
    """The kernel counts two timeouts: one after a silence, one during duplicate ACKs, which is not a stall."""
    assert run.counter("snd", "TcpExt.TCPTimeouts") == 2
    # At the receiver the second timeout follows its duplicates too closely to distinguish it from a fast
    # retransmission.
    assert run.data.rto_retransmissions == (2 if run.end == "snd" else 1)
    expected = ("timeout", "b", 3488, 3489, 213) if run.end == "snd" else ("timeout", "b", 3461, 3462, 263)
    assert told(run) == [expected]


@on(["oscil_10mbit_300ms_170p2_guard"], ends=["snd"])
def test_tail_loss_probes_into_a_receiver_that_refuses(run: Run) -> None:
    """Each is a probe in the table, after at least two round trips; the other stalls wait for the window."""
    stalls = [stall for stall in run.connection.stalls if stall.cause not in PAUSES]
    assert {stall.cause for stall in stalls} == {"tail_loss_probe", "window_full"}
    probes = [stall for stall in stalls if stall.cause == "tail_loss_probe"]
    assert len(probes) == 12
    assert len(probes) <= run.counter("snd", "TcpExt.TCPLossProbes")
    table = dict(run.connection.segments().items())
    rows = dict(zip(table["frame"].tolist(), table["events"].tolist(), strict=True))
    assert all("tail_loss_probe" in rows[stall.after_frame] for stall in probes)
    assert all(stall.flight_bytes > 0 and stall.sender == "b" for stall in probes)


@on(["oscil_10mbit_300ms_170p2_guard"], ends=["rcv"])
def test_the_same_probes_at_the_receiver(run: Run) -> None:
    """Their silences of 0.7 to 0.9 s are listed although the return direction has only the SYN's sample."""
    assert sum(stall.cause == "tail_loss_probe" for stall in run.connection.stalls) >= 10


@pytest.mark.parametrize("name", ["window-scaling", "no-window-scaling", "loss-1-percent", "cooked-any"])
def test_no_stall_in_a_transfer_that_never_stops(name: str) -> None:
    connection = tcpwin.analyze(ROOT / "captures" / "lab" / f"{name}.pcap.gz").connections[0]
    assert connection.stalls == []


def test_the_lost_update_at_both_ends() -> None:
    """The reader slept 1.7 s; the relay dropped the following update, and a probe found the window open."""
    sender, receiver = (
        tcpwin.analyze(ROOT / "captures" / "wild" / name).connections[0]
        for name in ("lost-window-update.pcap.gz", "lost-window-update-receiver.pcap.gz")
    )
    causes = [(stall.cause, stall.before_frame, stall.after_frame) for stall in sender.stalls]
    closed = [("window_full", 83, 84), ("zero_window", 85, 86), ("zero_window", 87, 88), ("zero_window", 89, 90)]
    assert causes == closed
    # Only the receiver's capture shows that the window was open for the last 440 ms.
    causes = [(stall.cause, stall.before_frame, stall.after_frame) for stall in receiver.stalls]
    assert causes == [*closed, ("window_update_lost", 90, 91)]


PAGE = (ROOT / "tcpwin" / "docs" / "stalls.md").read_text(encoding="utf8")


def causes() -> list[str]:
    """Return the engine's names except the one for no cause."""
    source = (ROOT / "tcpwin" / "engine" / "src" / "tcp" / "connection" / "stalls.rs").read_text(encoding="utf8")
    names = re.findall(r'^    "(\w+)",$', source, re.MULTILINE)
    return [name for name in names if name != "unknown"]


def test_the_page_explains_each_cause_and_says_which_are_pauses() -> None:
    rows = re.findall(r"^\| \*\*(\w+)\*\*( \(pause\))? \|", PAGE, re.MULTILINE)
    assert sorted(name for name, _ in rows) == sorted(causes())
    assert {name for name, pause in rows if pause} == PAUSES


def test_each_cause_has_its_ladder() -> None:
    ladders = [path.read_text(encoding="utf8") for path in (ROOT / "tests" / "scenarios").glob("stall-*.ladder")]
    assert [cause for cause in causes() if not any(f'("{cause}", ' in text for text in ladders)] == []


def test_the_stalls_of_the_page_are_those_of_its_capture() -> None:
    rows = re.findall(r"^\| (\w+) \| ([ab]) \| (\d+), (\d+) \| (\d+) ms \|$", PAGE, re.MULTILINE)
    stalls = tcpwin.analyze(ROOT / "captures" / "lab" / "zero-window-stall.pcap.gz").connections[0].stalls
    expected = [
        (stall.cause, stall.sender, stall.before_frame, stall.after_frame, round(stall.duration_ns / MS))
        for stall in stalls
    ]
    assert [(cause, side, int(one), int(two), int(ms)) for cause, side, one, two, ms in rows] == expected
