"""The offset between two clocks: bounds by hand, lab files with wrong clocks, and files with false times."""

from __future__ import annotations

import random
import re
from decimal import Decimal
from itertools import product
from pathlib import Path

import pytest
from cases import all_cases
from hosts.joined import MS_NS, SECOND_NS, Transfer, copied_run, moved, ss_text, without_start, write_pcap
from lab.runs import Run
from lab.selection import COPIES, LATE, on
from spread import some_by_day

from tcpwin.hosts import ClockOffset, Host, JoinedSample, SnapshotFile
from tcpwin.hosts.clock import CONTRADICTION, Bounds, estimate, given
from tcpwin.limits import analyze

HOUR_NS = 3600 * SECOND_NS
SKEWS_NS = {
    "two hours behind": -2 * HOUR_NS,
    "3.7 s behind": -3_700 * MS_NS,
    "40 ms behind": -40 * MS_NS,
    "half a second ahead": 500 * MS_NS,
    "a day ahead": 24 * HOUR_NS,
}
# A socket is read up to this long after its timestamp, which lowers every lower bound by as much.
READ_NS = 200_000
STAMP_NS = 1_700_000_000_123_456_789
# Clocks may drift by 200 ppm: add this share of the span, either way, to the estimated offset.
DRIFT = 200e-6


def of(text: str) -> SnapshotFile:
    return SnapshotFile(text.encode())


def clock_of(host: Host) -> ClockOffset:
    assert host.clock is not None
    return host.clock


# Derived by hand.


def test_nothing_is_known_without_bounds() -> None:
    nothing = ClockOffset(0, None, None, "assumed", 0, 0)
    assert estimate(()) == nothing
    assert estimate([Bounds(None, None), Bounds(None, None)]) == nothing
    assert nothing.uncertainty_ns is None


def test_given_is_certain() -> None:
    clock = given(-7)
    assert clock == ClockOffset(-7, -7, -7, "given", 0, 0)
    assert clock.uncertainty_ns == 0
    with pytest.raises(ValueError, match="exceed a century"):
        given(10**30)


@all_cases(
    ("bounds", "expected", "uncertainty_ns"),
    [
        ([(-5 * MS_NS, 3 * MS_NS)], (0, -5 * MS_NS - READ_NS, 3 * MS_NS, "same_clock"), 5 * MS_NS + READ_NS),
        # Each bound is the tightest of the samples' bounds.
        (
            [(-5 * MS_NS, 3 * MS_NS), (-2 * MS_NS, 9 * MS_NS)],
            (0, -2 * MS_NS - READ_NS, 3 * MS_NS, "same_clock"),
            3 * MS_NS,
        ),
        # Nothing is certain if one side is unbounded.
        ([(-5 * MS_NS, None)], (0, -5 * MS_NS - READ_NS, None, "assumed"), None),
        ([(None, 4 * MS_NS)], (0, None, 4 * MS_NS, "assumed"), None),
        # Half of 900 and 1000 ms, minus half of the reading time.
        ([(900 * MS_NS, 1000 * MS_NS)], (949_900_000, 899_800_000, 1_000_000_000, "estimated"), 50_100_000),
        ([(900 * MS_NS, None)], (0, 899_800_000, None, "assumed"), None),
        ([(None, -900 * MS_NS)], (0, None, -900 * MS_NS, "assumed"), None),
        # A lower bound this near to zero is explained by the reading time.
        ([(MS_NS + READ_NS, 5 * MS_NS)], (0, MS_NS, 5 * MS_NS, "same_clock"), 5 * MS_NS),
        ([(MS_NS + READ_NS + 2, 5 * MS_NS)], (3_000_001, 1_000_002, 5 * MS_NS, "estimated"), 1_999_999),
        # The bounds contradict each other by 3 ms: sockets were read up to 5 ms late, 9 to 11 ms, which adds that
        # uncertainty on both sides.
        (
            [(10 * MS_NS, 11 * MS_NS), (14 * MS_NS, 15 * MS_NS)],
            (10 * MS_NS, 4 * MS_NS, 16 * MS_NS, "estimated"),
            6 * MS_NS,
        ),
    ],
)
def test_bounds_of_samples_taken_at_once(
    bounds: list[tuple[int | None, int | None]], expected: tuple[int, int | None, int | None, str], uncertainty_ns: int
) -> None:
    clock = estimate(Bounds(*each, STAMP_NS) for each in bounds)
    assert clock == ClockOffset(*expected, len(bounds), len(bounds))
    assert clock.uncertainty_ns == uncertainty_ns


def test_samples_that_contradict_each_other_leave_the_clock_assumed() -> None:
    bounds = [Bounds(place * SECOND_NS, place * SECOND_NS + MS_NS, STAMP_NS) for place in range(1, 11)]
    assert estimate(bounds) == ClockOffset(0, None, None, "assumed", 10, 1)
    assert estimate([CONTRADICTION] * 5) == ClockOffset(0, None, None, "assumed", 5, 0)
    # Nine of ten samples suffice, eight do not.
    good = Bounds(-MS_NS, MS_NS, STAMP_NS)
    assert estimate([good] * 9 + [CONTRADICTION]) == ClockOffset(0, -MS_NS - READ_NS, MS_NS, "same_clock", 10, 9)
    assert estimate([good] * 8 + [CONTRADICTION] * 2) == ClockOffset(0, None, None, "assumed", 10, 8)


def test_two_stretches_as_good_are_both_named() -> None:
    """Neither is preferred: the few samples in between do not make an offset certain."""
    wide = [Bounds(SECOND_NS, 9 * SECOND_NS, STAMP_NS)] * 18
    two = [Bounds(2 * SECOND_NS, 3 * SECOND_NS, STAMP_NS), Bounds(6 * SECOND_NS, 7 * SECOND_NS, STAMP_NS)]
    clock = estimate(wide + two)
    assert (clock.least_ns, clock.most_ns) == (2 * SECOND_NS - READ_NS, 7 * SECOND_NS)
    assert (clock.method, clock.samples, clock.agreeing) == ("estimated", 20, 19)


def test_clocks_that_drift_are_within_the_bounds_from_first_to_last() -> None:
    """A hundred samples in 100 s, each known to 0.5 ms, with a clock that gains 100 µs per second."""
    bounds = [
        Bounds(
            SECOND_NS + 100_000 * second - 500_000,
            SECOND_NS + 100_000 * second + 500_000,
            STAMP_NS + second * SECOND_NS,
        )
        for second in range(100)
    ]
    clock = estimate(bounds)
    assert (clock.method, clock.samples, clock.agreeing) == ("estimated", 100, 100)
    assert clock.least_ns is not None
    assert clock.most_ns is not None
    # From 1 s to 1.0099 s, and not much wider.
    assert SECOND_NS - 3 * MS_NS <= clock.least_ns <= SECOND_NS
    assert SECOND_NS + 9_900_000 <= clock.most_ns <= SECOND_NS + 13 * MS_NS


@all_cases("ppm", [0.3, 1, 7.5, 12.4, 37, 62.6, 150])
@all_cases("seconds", [10, 60, 600, 3600])
@all_cases("width_ns", [300_000, 2 * MS_NS, 40 * MS_NS])
def test_no_drift_makes_the_bounds_lie(ppm: float, seconds: int, width_ns: int) -> None:
    """No offset is better than a wrong one. Sockets are read up to 0.1 ms late."""
    chance = random.Random(1)
    truths, bounds = [], []
    for place in range(300):
        time_ns = place * seconds * SECOND_NS // 300
        truths.append(5 * SECOND_NS + int(ppm * time_ns / 1e6))
        late_ns = chance.randrange(100_000)
        least_ns = truths[-1] - chance.randrange(width_ns) + late_ns
        bounds.append(Bounds(least_ns, truths[-1] + chance.randrange(width_ns) + late_ns, time_ns))
    clock = estimate(bounds)
    if clock.method != "assumed":
        assert clock.least_ns is not None
        assert clock.most_ns is not None
        assert clock.least_ns <= min(truths) <= max(truths) <= clock.most_ns
        assert clock.method == "estimated"
    if seconds <= 60:
        assert clock.method == "estimated"


def test_stamps_of_whole_seconds_are_up_to_a_second_early() -> None:
    """Two samples, taken 0.3 and 0.9 s after their timestamps by a correct clock, each known to 10 ms."""
    bounds = [
        Bounds(300 * MS_NS, 310 * MS_NS, 1_700_000_000 * SECOND_NS),
        Bounds(900 * MS_NS, 910 * MS_NS, 1_700_000_001 * SECOND_NS),
    ]
    # Timestamps and offset are less than a second before the samples: -100.2 to 310 ms; the samples up to a second
    # later.
    assert estimate(bounds) == ClockOffset(0, -100_200_000, 1_310 * MS_NS, "same_clock", 2, 2)


# Lab runs with wrong clocks.


def first_stamp(text: str) -> int:
    """Return the time of the first timestamp."""
    return int(Decimal(text.split("\n", 1)[0].removeprefix("### ")).scaleb(9))


def check_skewed(run: Run, by_ns: int, drift_ppm: int = 0) -> None:
    """The stated interval contains the truth, whatever the host's clock, and is as narrow as round trip and data flow
    allow.

    With a drifting clock each sample has a different true offset.
    """
    texts = {end: ss_text(run, end) for end in ("snd", "rcv")}
    files = [(end, of(moved(text, by_ns, drift_ppm=drift_ppm))) for end, text in texts.items()]
    analysis = analyze(run.capture, snapshots=files)
    for host in analysis.hosts:
        clock = clock_of(host)
        begin_ns = first_stamp(texts[host.label])
        times = [sample.time_ns for sample in run.samples(host.label)]
        truths = [-by_ns - (time_ns - begin_ns) * drift_ppm // 1_000_000 for time_ns in times]
        assert clock.method in ("same_clock", "estimated")
        assert clock.least_ns is not None
        assert clock.most_ns is not None
        # Identical clocks do not drift; a drift smaller than the bounds is invisible.
        unseen_ns = max(truths) - min(truths) if clock.method == "same_clock" else 0
        assert clock.least_ns - unseen_ns <= min(truths)
        assert max(truths) <= clock.most_ns + unseen_ns
        # Samples are 200 ms apart. A transfer without SYN and rhythm fits many offsets.
        if not run.is_late:
            span_ns = max(times) - min(times) + SECOND_NS
            assert clock.most_ns - clock.least_ns <= run.rtt_ns + 210 * MS_NS + 2 * DRIFT * span_ns
    found = analysis.connections[run.connection.id].snapshots
    assert [each.disagreements for each in found] == [()] * len(found)


@pytest.mark.parametrize(("skew", "name"), some_by_day(product(SKEWS_NS, [name for _, _, name in COPIES]), of=11))
def test_offset_is_right_within_its_own_uncertainty(skew: str, name: str) -> None:
    check_skewed(copied_run(name), SKEWS_NS[skew])


@on(copies=False, of=12)
def test_offset_is_right_within_its_own_uncertainty_in_every_run(run: Run) -> None:
    check_skewed(run, SKEWS_NS["3.7 s behind"])


@on(copies=False, of=12, first=1)
def test_a_clock_that_drifts_does_not_make_it_lie(run: Run) -> None:
    check_skewed(run, SKEWS_NS["two hours behind"], drift_ppm=100)


@all_cases("by_ns", [0, SKEWS_NS["half a second ahead"]], ids=["right", "half a second ahead"])
@all_cases("name", [name for scenario, _, name in COPIES if scenario not in LATE], of=3)
def test_stamps_of_whole_seconds_do_not_lie(name: str, by_ns: int) -> None:
    """With timestamps from `date`, the kernel's values are within a range of more than a second."""
    run = copied_run(name)
    files = [(end, of(re.sub(r"(### \d+)\.\d+", r"\1", moved(ss_text(run, end), by_ns)))) for end in ("snd", "rcv")]
    analysis = analyze(run.capture, snapshots=files)
    for host in analysis.hosts:
        clock = clock_of(host)
        assert clock.method in ("same_clock", "estimated")
        assert clock.least_ns is not None
        assert clock.most_ns is not None
        assert clock.least_ns <= -by_ns
        assert clock.most_ns >= -by_ns
    found = analysis.connections[0].snapshots
    assert [each.disagreements for each in found] == [()] * len(found)


def key(joined: JoinedSample) -> tuple[object, ...]:
    return joined.side, joined.sample.bytes_acked, joined.sample.bytes_received, joined.sample.lastsnd_ns


@pytest.mark.parametrize("name", ["slow-reader", "receive-buffer-64k", "receive-buffer-64k-receiver", "idle-restart"])
def test_joined_values_are_as_without_skew_within_the_doubt(name: str) -> None:
    run = copied_run(name)
    plain, skewed = (
        analyze(run.capture, snapshots=[(end, of(moved(ss_text(run, end), by_ns))) for end in ("snd", "rcv")])
        for by_ns in (0, SKEWS_NS["a day ahead"])
    )
    for side in "ab":
        before, after = (
            [each for each in analysis.connections[0].snapshots if each.side == side] for analysis in (plain, skewed)
        )
        assert [key(each) for each in before] == [key(each) for each in after]
        compared = 0
        for old, new in zip(before, after, strict=True):
            for value in ("peer_window_bytes", "own_window_bytes", "flight_bytes", "acked_bytes", "received_bytes"):
                one, other = getattr(old, value), getattr(new, value)
                if one is not None and other is not None and one.value is not None:
                    compared += 1
                    assert other.holds(one.value), (value, old.time_ns)
        assert compared > 4 * 10


# Without SYN.


@pytest.mark.parametrize(
    ("skew", "name"),
    some_by_day(
        product(["right", *SKEWS_NS], ["slow-reader", "receive-buffer-64k", "zero-window-stall", "no-window-scaling"])
    ),
)
def test_counts_are_tied_where_no_syn_tells_where_they_begin(skew: str, name: str, tmp_path: Path) -> None:
    """The rhythm of the transfer aligns them: acknowledged bytes then equal those of the full capture."""
    run, by_ns = copied_run(name), SKEWS_NS.get(skew, 0)
    text = moved(ss_text(run, "snd"), by_ns)
    capture = without_start(run.capture, tmp_path)
    analysis = analyze(capture, snapshots=[of(text)])
    clock = clock_of(analysis.hosts[0])
    assert clock.least_ns is not None
    assert clock.most_ns is not None
    assert clock.least_ns <= -by_ns <= clock.most_ns
    found = analysis.connections[0].snapshots
    assert [each.disagreements for each in found] == [()] * len(found)
    tied = [(each.sample.count("bytes_acked"), each.acked_bytes) for each in found if each.acked_bytes is not None]
    assert len(tied) >= 0.8 * len(found)
    assert all(seen.holds(kernel) for kernel, seen in tied if kernel is not None)


def test_the_fin_ties_the_counts_of_a_transfer_without_any_rhythm(tmp_path: Path) -> None:
    """In FIN-WAIT-1, acknowledged and queued bytes (the FIN counts as one) add up to all bytes."""
    transfer = Transfer()
    capture = write_pcap(tmp_path / "c.pcap", transfer)
    whole = capture.read_bytes()
    # The handshake's three packets: 16 bytes of record, 14 of Ethernet, 20 of IP, 20 of TCP and 4 of options.
    late = tmp_path / "late.pcap"
    late.write_bytes(whole[:24] + whole[24 + 74 + 74 + 70 :])
    by_ns = SKEWS_NS["two hours behind"]
    steady = transfer.server_ss(offset_ns=by_ns)
    closing_ns = transfer.end_ns + 5 * MS_NS
    last = transfer.server_ss([closing_ns], offset_ns=by_ns).replace("ESTAB 0 0", "FIN-WAIT-1 0 1")
    assert "FIN-WAIT-1 0 1" in last
    vague = clock_of(analyze(late, snapshots=[of(steady)]).hosts[0])
    exact = clock_of(analyze(late, snapshots=[of(steady + last)]).hosts[0])
    assert vague.least_ns is None or vague.least_ns < -by_ns - 100 * MS_NS
    assert vague.most_ns is None or vague.most_ns > -by_ns + 100 * MS_NS
    # As with the SYN: 3.2 ms below, 7 ms above, and the drift over 1.2 s.
    assert exact.method == "estimated"
    assert exact.least_ns is not None
    assert exact.most_ns is not None
    assert -by_ns - 4 * MS_NS <= exact.least_ns <= -by_ns - 3_200_000
    assert -by_ns + 7 * MS_NS <= exact.most_ns <= -by_ns + 8 * MS_NS


OTHERS = (
    ("slow-reader", "receive-buffer-64k"),
    ("receive-buffer-64k", "slow-reader"),
    ("receive-buffer-64k", "loss-1-percent"),
    ("zero-window-stall", "idle-restart"),
    ("loss-1-percent", "zero-window-stall"),
    ("no-window-scaling", "slow-reader"),
    ("idle-restart", "no-window-scaling"),
)


def relabelled(name: str, other: str) -> tuple[Run, str]:
    """Return a run, and samples of another run's sender with the first run's four-tuple and time."""
    run, from_run = copied_run(name), copied_run(other)
    text = ss_text(from_run, "snd")
    first, there = run.samples("snd")[0].time_ns, from_run.samples("snd")[0].time_ns
    text = moved(text, first - there)
    ends = {str(from_run.receiver_port): str(run.receiver_port)}
    for old, new in ends.items():
        text = text.replace(f"10.9.2.2:{old}", f"10.9.2.2:{new}")
    return run, text


@pytest.mark.parametrize(("name", "other"), OTHERS)
@pytest.mark.parametrize(
    "is_cut", some_by_day([False, True], of=2), ids=lambda is_cut: "without SYN" if is_cut else "whole"
)
def test_samples_of_another_transfer_tie_nothing(name: str, other: str, is_cut: bool, tmp_path: Path) -> None:
    run, text = relabelled(name, other)
    capture = without_start(run.capture, tmp_path) if is_cut else run.capture
    analysis = analyze(capture, snapshots=[of(text)])
    [host] = analysis.hosts
    assert host.matched > 0
    clock = clock_of(host)
    assert (clock.method, clock.offset_ns, clock.uncertainty_ns) == ("assumed", 0, None)
    found = analysis.connections[0].snapshots
    assert len(found) == host.matched
    assert [(each.acked_bytes, each.disagreements) for each in found] == [(None, ())] * len(found)
