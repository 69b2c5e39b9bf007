"""The simulator obeys its own rules, so its truth is reliable: no byte lost, no cause without its reason.

Another test reads its captures with tshark, so no truth rests on an error of the writer.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

from cases import all_cases
from hypothesis import given, settings
from simulator.capture import MODULO, SCALE, Numbers, write
from simulator.draw import draw
from simulator.run import Run, simulate
from simulator.segment import Cause, Segment
from simulator.settings import Link, Receiving, Settings
from simulator.strategies import runs
from simulator.truth import CAUSES, OUT_OF_ORDER, SPURIOUS, truths

MILLISECOND_NS = 1_000_000
FIELDS = (
    "tcp.seq_raw",
    "tcp.ack_raw",
    "tcp.len",
    "tcp.flags",
    "tcp.window_size_value",
    "tcp.options.timestamp.tsval",
    "tcp.options.timestamp.tsecr",
    "tcp.options.sack_le",
    "tcp.options.sack_re",
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(runs)
def test_every_run_keeps_the_laws(run: Run) -> None:
    given_ = run.settings
    assert run.is_finished
    assert run.delivered[given_.receiver] == given_.data_bytes
    assert run.delivered[given_.sender] == given_.request_bytes
    for side in "ab":
        sent = [segment for segment in run.sent if segment.side == side]
        acks = [segment.ack for segment in sent if segment.ack is not None]
        assert acks == sorted(acks)
        assert_resent_is_what_was_sent_before(sent)
        assert_causes_have_their_reasons(run, side)
        if given_.sack:
            other = "b" if side == "a" else "a"
            assert run.counts[side]["dsacks"] == run.counts[side]["duplicates"]
            assert all(not segment.sacks for segment in run.sent if segment.side == other and segment.ack is None)
        else:
            assert all(not segment.sacks for segment in sent)
    assert_windows_are_obeyed(run)


def assert_resent_is_what_was_sent_before(sent: list[Segment]) -> None:
    """A cause is given exactly if bytes, a SYN or a FIN are resent; new data follows without a gap."""
    nxt = 0
    for segment in sent:
        if segment.is_pure_ack:
            assert segment.cause is None
        elif segment.cause is None:
            assert segment.seq == nxt
            nxt = segment.end
        else:
            assert segment.end <= nxt
            assert segment.transmission > 0


def assert_causes_have_their_reasons(run: Run, side: str) -> None:
    counts, resent = run.counts[side], run.resent(side)
    causes = Counter(segment.cause for segment in resent)
    fired = Counter(segment.timer for segment in run.sent if segment.side == side)
    assert fired["rto"] == counts["timeouts"]
    assert fired["tail loss probe"] == counts["probes"]
    assert causes[Cause.RTO] <= counts["timeouts"]
    assert causes[Cause.ZERO_WINDOW] <= counts["timeouts"] + counts["probes"]
    assert causes[Cause.TAIL_LOSS_PROBE] <= counts["probes"] - counts["probes_of_new_data"]
    assert causes[Cause.FAST] <= counts["recoveries"]
    assert not causes[Cause.RECOVERY] or counts["recoveries"]
    assert not causes[Cause.GO_BACK_N] or counts["timeouts"]
    if not run.settings.sack:
        assert not causes[Cause.TAIL_LOSS_PROBE]
        assert not causes[Cause.LOST_RETRANSMISSION]
    for segment in resent:
        expected: dict[Cause | None, str] = {Cause.RTO: "rto", Cause.TAIL_LOSS_PROBE: "tail loss probe"}
        if segment.cause not in (Cause.FIN, Cause.ZERO_WINDOW):
            assert segment.timer in (expected.get(segment.cause), *_timers_of_recovery(segment))


def _timers_of_recovery(segment: Segment) -> tuple[str, ...]:
    """RACK's timer may open and drive a recovery."""
    drives = (Cause.FAST, Cause.RECOVERY, Cause.LOST_RETRANSMISSION, Cause.GO_BACK_N)
    return ("reordering",) if segment.cause in drives else ()


def assert_windows_are_obeyed(run: Run) -> None:
    """No new data exceeds the right edge known to its sender."""
    side, edge = run.settings.sender, 0
    for captured in run.captures[side]:
        segment = captured.segment
        if segment.side != side and segment.ack is not None:
            edge = max(edge, segment.ack + segment.window)
        elif segment.length and segment.cause is None:
            assert segment.end - segment.fin <= edge


def test_the_same_settings_give_the_same_packets() -> None:
    given_ = draw(Random(5), sack=True, timestamps=True, wrap=False)
    first, second = simulate(given_), simulate(given_)
    assert [(one.time_ns, one.segment.seq) for one in first.captures["a"]] == [
        (one.time_ns, one.segment.seq) for one in second.captures["a"]
    ]


def test_every_cause_comes_up_often_on_both_sides() -> None:
    counts: dict[str, Counter[str]] = {"sender": Counter(), "receiver": Counter()}
    for seed in range(150):
        run = simulate(draw(Random(seed), sack=seed % 3 > 0, timestamps=True, wrap=False))
        counts["sender"].update(true.label for true in truths(run, run.settings.sender))
        counts["receiver"].update(true.label for true in truths(run, run.settings.receiver))
    assert not [cause for cause in CAUSES if cause != SPURIOUS and counts["sender"][cause] < 8]
    assert not [cause for cause in (*CAUSES, OUT_OF_ORDER) if counts["receiver"][cause] < 8]


BULK = Settings(writes=((0, 40 * 1448),), data_link=Link(delay_ns=20 * MILLISECOND_NS, rate_bps=50_000_000))


@all_cases(
    ("changed", "causes"),
    [
        ({"drops": frozenset({("a", 12, 0)})}, {Cause.FAST: 1}),
        ({"drops": frozenset({("a", 12, 0), ("a", 15, 0)})}, {Cause.FAST: 1, Cause.RECOVERY: 1}),
        ({"drops": frozenset({("a", 12, 0), ("a", 12, 1)})}, {Cause.FAST: 1, Cause.LOST_RETRANSMISSION: 1}),
        ({"drops": frozenset({("a", 12, 0), ("a", 12, 1)}), "sack": False}, {Cause.FAST: 1, Cause.RTO: 1}),
        ({"drops": frozenset({("a", 39, 0)})}, {Cause.TAIL_LOSS_PROBE: 1}),
        ({"drops": frozenset({("a", 39, 0)}), "sack": False}, {Cause.RTO: 1}),
        ({"drops": frozenset({("a", -1, 0), ("b", -1, 0)})}, {Cause.SYN: 1}),
        ({"drops": frozenset({("a", 39, 0), ("a", 39, 1)})}, {Cause.TAIL_LOSS_PROBE: 1, Cause.RTO: 1}),
    ],
)
def test_a_loss_is_mended_as_linux_mends_it(changed: dict[str, object], causes: dict[Cause, int]) -> None:
    run = simulate(replace(BULK, **changed))  # type: ignore[arg-type]
    assert Counter(segment.cause for segment in run.resent("a")) == causes


def test_a_lost_tail_of_two_begins_with_a_probe_and_continues_by_its_sack() -> None:
    run = simulate(replace(BULK, drops=frozenset({("a", 38, 0), ("a", 39, 0)})))
    assert [segment.cause for segment in run.resent("a")] == [Cause.TAIL_LOSS_PROBE, Cause.FAST]
    assert [segment.ordinal for segment in run.resent("a")] == [39, 38]


def test_a_window_that_closes_under_data_in_flight_is_probed_with_it() -> None:
    stalls = ((60 * MILLISECOND_NS, 2_000 * MILLISECOND_NS),)
    run = simulate(replace(BULK, receiving=Receiving(stalls=stalls, shrinks=True)))
    causes = Counter(segment.cause for segment in run.resent("a"))
    assert causes[Cause.ZERO_WINDOW] >= 2


def test_tshark_reads_what_was_simulated(tmp_path: Path, tool: Callable[[str], str]) -> None:
    simulated = []
    for seed in range(12):
        run = simulate(draw(Random(seed), sack=bool(seed & 1), timestamps=bool(seed & 2), wrap=bool(seed & 4)))
        simulated += [(run, "a"), (run, "b")]
    with (tmp_path / "runs.pcap").open("wb") as out:
        write(out, simulated)
    command = [tool("tshark"), "-n", "-o", "tcp.relative_sequence_numbers:FALSE", "-T", "fields"]
    command += ["-r", str(tmp_path / "runs.pcap")]
    command += [word for name in FIELDS for word in ("-e", name)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    described = [_described(run, captured.segment) for run, side in simulated for captured in run.captures[side]]
    assert output.splitlines() == described


def _described(run: Run, segment: Segment) -> str:
    """Return a packet's fields as tshark prints them, read independently of the writer."""
    numbers, other = Numbers.of(run), "b" if segment.side == "a" else "a"
    flags = sum(
        bit
        for bit, is_set in ((1, segment.fin), (2, segment.syn), (8, segment.push), (16, segment.ack is not None))
        if is_set
    )
    value, echo = segment.timestamps or ("", "")
    ack = 0 if segment.ack is None else (numbers.isn[other] + segment.ack) % MODULO
    return "\t".join(
        (
            str((numbers.isn[segment.side] + segment.seq) % MODULO),
            str(ack),
            str(segment.length),
            f"0x{flags:04x}",
            str(segment.window if segment.syn else segment.window // 2**SCALE),
            str(value and (numbers.stamp[segment.side] + int(value)) % MODULO),
            str(echo and (numbers.stamp[other] + int(echo)) % MODULO),
            ",".join(str((numbers.isn[other] + left) % MODULO) for left, _ in segment.sacks),
            ",".join(str((numbers.isn[other] + right) % MODULO) for _, right in segment.sacks),
        )
    )
