"""Increases between samples are exact without a restart, and never too large with one."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from cases import all_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import LAB_RUNS

import tcpwin
from tcpwin.hosts import CounterSample
from tcpwin.hosts.counter_sources import names_in_order
from tcpwin.hosts.counters import GAUGES, MEANINGS, CounterDelta, are_increments, deltas, falls
from tcpwin.hosts.formats import counter_csv, nstat
from tcpwin.hosts.lines import Lines

SECOND = 1_000_000_000
PAGE = Path(tcpwin.__file__).parent / "docs" / "hosts" / "counters.md"
# From the sections TcpExt and Tcp, as in the kernel.
WANTED = """
    PruneCalled RcvPruned OfoPruned TCPRcvCollapsed TCPRcvQDrop TCPOFODrop TCPOFOQueue TCPOFOMerge TCPZeroWindowDrop
    BeyondWindow TCPBacklogDrop TCPRcvCoalesce TCPToZeroWindowAdv TCPFromZeroWindowAdv TCPWantZeroWindowAdv TCPWinProbe
    TCPKeepAlive
    TCPTimeouts TCPLossProbes TCPLossProbeRecovery TCPSpuriousRTOs TCPFastRetrans TCPSlowStartRetrans TCPSynRetrans
    TCPLostRetransmit TCPSackRecovery TCPRenoRecovery TCPSACKReorder TCPDSACKRecv TCPDSACKOfoRecv TCPDSACKOldSent
    TCPDSACKOfoSent TCPRetransFail TCPSpuriousRtxHostQueues TCPWqueueTooBig TCPMemoryPressures TCPMemoryPressuresChrono
    TCPAckCompressed DelayedACKs DelayedACKLost TCPAbortOnData TCPAbortOnClose TCPAbortOnMemory TCPAbortOnTimeout
    TCPAbortOnLinger TCPAbortFailed TCPOrigDataSent TCPDelivered TCPDeliveredCE TcpTimeoutRehash TCPPLBRehash
    RetransSegs InSegs OutSegs EstabResets
"""


def sample(
    time_ns: int | None, values: dict[str, int], is_increment: bool | None = False, resets: frozenset[str] = frozenset()
) -> CounterSample:
    return CounterSample(time_ns, 1, values, is_increment, {}, resets)


def test_counts_since_boot_are_subtracted() -> None:
    found = list(
        deltas(
            [
                sample(10 * SECOND, {"TcpInSegs": 5, "TcpExtPruneCalled": 0, "TcpCurrEstab": 9}),
                sample(12 * SECOND, {"TcpInSegs": 8, "TcpExtPruneCalled": 0, "TcpCurrEstab": 3}),
                sample(None, {"TcpInSegs": 8, "TcpExtPruneCalled": 1, "TcpOutSegs": 4}),
            ]
        )
    )
    assert found == [
        CounterDelta(10 * SECOND, 12 * SECOND, {"TcpInSegs": 3, "TcpExtPruneCalled": 0}),
        CounterDelta(12 * SECOND, None, {"TcpInSegs": 0, "TcpExtPruneCalled": 1}),
    ]
    assert [each.rates for each in found] == [{"TcpInSegs": 1.5, "TcpExtPruneCalled": 0.0}, None]


def test_a_restart_gives_the_least_that_was_counted() -> None:
    found = list(
        deltas(
            [
                sample(1 * SECOND, {"TcpInSegs": 500, "TcpExtPruneCalled": 2}),
                sample(3 * SECOND, {"TcpInSegs": 40, "TcpExtPruneCalled": 3}),
            ]
        )
    )
    assert found == [
        CounterDelta(1 * SECOND, 3 * SECOND, {"TcpInSegs": 40, "TcpExtPruneCalled": 1}, frozenset({"TcpInSegs"}))
    ]


def test_increments_are_increases_already() -> None:
    found = list(
        deltas(
            [
                sample(1 * SECOND, {"TcpInSegs": 900}, is_increment=False),
                sample(2 * SECOND, {"TcpInSegs": 5, "MPTcpExtMPCurrEstab": 1}, is_increment=True),
                sample(4 * SECOND, {"TcpInSegs": 0}, is_increment=True, resets=frozenset({"TcpInSegs"})),
            ]
        )
    )
    assert found == [
        CounterDelta(None, 2 * SECOND, {"TcpInSegs": 5}),
        CounterDelta(2 * SECOND, 4 * SECOND, {"TcpInSegs": 0}, frozenset({"TcpInSegs"})),
    ]


def test_comparing_samples_of_an_unknown_kind_adds_a_note() -> None:
    found = list(
        deltas(
            [
                sample(1 * SECOND, {"TcpInSegs": 5, "TcpOutSegs": 1}, is_increment=None),
                sample(2 * SECOND, {"TcpInSegs": 7, "TcpOutSegs": 1}, is_increment=None),
                sample(3 * SECOND, {"TcpInSegs": 6, "TcpOutSegs": 4}, is_increment=None),
                sample(4 * SECOND, {"TcpInSegs": 9, "TcpOutSegs": 4}, is_increment=False),
            ]
        )
    )
    assert found == [
        CounterDelta(1 * SECOND, 2 * SECOND, {"TcpInSegs": 2, "TcpOutSegs": 0}, is_assumed=True),
        CounterDelta(2 * SECOND, 3 * SECOND, {"TcpInSegs": 6, "TcpOutSegs": 4}, is_assumed=True),
    ]


def test_a_name_that_is_missing_was_0_only_where_zeros_were_left_out() -> None:
    whole = {"IpInReceives": 7, "IpExtInOctets": 700}
    found = list(
        deltas(
            [
                sample(1 * SECOND, whole),
                sample(2 * SECOND, {**whole, "TcpExtPruneCalled": 3}),
                sample(3 * SECOND, {**whole, "TcpOutSegs": 0}),
                sample(4 * SECOND, {**whole, "TcpExtPruneCalled": 5}),
                sample(5 * SECOND, whole),
                sample(6 * SECOND, {"UdpInDatagrams": 1}),
            ]
        )
    )
    none = {"IpInReceives": 0, "IpExtInOctets": 0}
    assert found == [
        CounterDelta(1 * SECOND, 2 * SECOND, {**none, "TcpExtPruneCalled": 3}),
        CounterDelta(2 * SECOND, 3 * SECOND, {**none, "TcpOutSegs": 0}),
        CounterDelta(3 * SECOND, 4 * SECOND, none),
        CounterDelta(4 * SECOND, 5 * SECOND, {**none, "TcpExtPruneCalled": 0}, frozenset({"TcpExtPruneCalled"})),
    ]


@pytest.mark.parametrize(
    ("start_ns", "end_ns"), [(None, SECOND), (SECOND, None), (SECOND, SECOND), (2 * SECOND, SECOND)]
)
def test_no_rates_without_a_time_that_passed(start_ns: int | None, end_ns: int | None) -> None:
    delta = CounterDelta(start_ns, end_ns, {"TcpInSegs": 1})
    assert (delta.seconds, delta.rates) == (None, None)


STEPS = st.lists(st.tuples(st.integers(0, 1 << 34), st.booleans()), max_size=12)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.dictionaries(st.sampled_from(["TcpInSegs", "TcpOutSegs", "IpInReceives"]), STEPS, min_size=1), st.booleans())
def test_an_increase_is_exact_and_after_a_restart_or_a_wrap_never_too_much(
    steps: dict[str, list[tuple[int, bool]]], is_32_bit: bool
) -> None:
    """Each step counts, also after a restart; a 32-bit kernel wraps at 2^32."""
    length = min(map(len, steps.values()))
    totals = dict.fromkeys(steps, 0)
    samples = [sample(0, dict(totals))]
    truths: list[tuple[dict[str, int], bool]] = []
    for index in range(length):
        restarts = next(iter(steps.values()))[index][1]
        increases = {name: each[index][0] for name, each in steps.items()}
        wraps = False
        for name, increase in increases.items():
            total = (0 if restarts else totals[name]) + increase
            wraps = wraps or (is_32_bit and total >= 1 << 32)
            totals[name] = total % (1 << 32) if is_32_bit else total
        samples.append(sample((index + 1) * SECOND, dict(totals)))
        truths.append((increases, restarts or wraps))
    found = list(deltas(samples))
    assert len(found) == length
    for delta, (increases, is_broken) in zip(found, truths, strict=True):
        assert delta.values.keys() == increases.keys()
        if not is_broken:
            assert delta.values == increases
            assert delta.resets == frozenset()
        for name, value in delta.values.items():
            assert 0 <= value <= increases[name]
            if name in delta.resets:
                assert is_broken


def test_increments_or_since_boot() -> None:
    grows = [sample(None, {"TcpInSegs": count}, is_increment=None) for count in range(1, 13)]
    assert are_increments(grows) is False
    assert are_increments(grows[:10]) is None
    assert are_increments(grows[::-1]) is True
    assert are_increments([]) is None
    assert are_increments(grows[:1]) is None
    marked = sample(None, {"TcpInSegs": 1}, is_increment=None, resets=frozenset({"TcpInSegs"}))
    assert are_increments([marked]) is True


def test_each_counter_that_we_use_has_a_meaning_and_is_one_of_the_kernels() -> None:
    names = {counter_csv.full_name(name) for name in WANTED.split()}
    assert names == set(MEANINGS)
    assert all(meaning.name == name for name, meaning in MEANINGS.items())
    for meaning in MEANINGS.values():
        assert re.fullmatch(r"[A-Z][^.]*(?:\.[^ .][^.]*)*\.", meaning.counts), meaning.counts
        assert re.fullmatch(r"[^;]*\bnet/ipv4/\w+\.c(?:; [^;]*\bnet/ipv4/\w+\.c)?", meaning.source), meaning.source
        assert meaning.since is None or re.fullmatch(r"\d\.\d{1,2}", meaning.since)


def test_the_page_says_the_same_words() -> None:
    page = PAGE.read_text(encoding="utf8")
    rows = [row.strip("| ").split(" | ") for row in page.splitlines() if row.startswith("| Tcp")]
    assert [(row[0], row[1], row[2], row[3].strip(" |") if len(row) > 3 else "") for row in rows] == [
        (each.name, each.counts, each.source, each.since or "") for each in MEANINGS.values()
    ]
    assert all(name in page for name in GAUGES)


def test_before_and_after_of_the_lab_frame_its_table() -> None:
    """During a run the table grows at most as much as the texts before and after it."""
    folders = sorted(path.parent for path in LAB_RUNS.glob("*/nstat_rcv.csv"))
    assert len(folders) >= 20
    grown = 0
    for folder in folders:
        for side in ("snd", "rcv"):
            texts = [(folder / f"nstat_{side}_{when}.txt").read_text(encoding="utf8") for when in ("before", "after")]
            before, after = (next(nstat.read(Lines(text.splitlines()))) for text in texts)
            (delta,) = deltas([before, after])
            assert delta.is_assumed
            assert delta.resets == frozenset()
            with (folder / f"nstat_{side}.csv").open(encoding="utf8") as file:
                rows = list(csv.DictReader(file))
            for name in rows[0]:
                if name != "t":
                    increase = int(rows[-1][name]) - int(rows[0][name])
                    assert 0 <= increase <= delta.values[counter_csv.full_name(name)], (folder, side, name)
                    grown += increase
    assert grown > 1000


def test_increases_between_two_samples() -> None:
    before = sample(None, {"TcpInSegs": 5, "TcpCurrEstab": 9})
    assert not falls(before, sample(None, {"TcpInSegs": 5, "TcpCurrEstab": 1}))
    assert not falls(before, sample(None, {"TcpOutSegs": 1}))
    assert falls(before, sample(None, {"TcpInSegs": 4, "TcpOutSegs": 1}))


@all_cases(
    ("names", "order"),
    [
        (["nstat_rcv_after.txt", "nstat_rcv_before.txt"], [1, 0]),
        (["x/after/begin.txt", "x/before/end.txt"], [0, 1]),
        (["n-end.txt", "n.txt", "n-start.txt"], [2, 1, 0]),
        (["one.txt", "two.txt"], None),
        (["a_before.txt", "b_before.txt"], None),
        (["recorder.txt", "endless_before.txt"], [1, 0]),
        (["only.txt"], [0]),
    ],
)
def test_names_that_say_which_was_first(names: list[str], order: list[int] | None) -> None:
    assert names_in_order(names) == order
