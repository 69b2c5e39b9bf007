"""The cause of each retransmission at the sender equals the kernel's counters.

Linux 6.1 counts each retransmission also by its reason: TCPFastRetrans in recovery, TCPSlowStartRetrans after a
timeout, TCPTimeouts for the timeout's own segment, TCPLossProbes for a probe. A probe with new data would not be a
retransmission; there was none, because the counters add up to RetransSegs in every run.
"""

from __future__ import annotations

import pytest
from lab.agreement import SS_DELAY_NS
from lab.both_ends import data_way
from lab.events import RESENT, frames_of, frames_resent, names_by_frame, times_of
from lab.resends import Resend, resends
from lab.runs import ACK, MILLISECOND_NS, Run
from lab.selection import ROUGH, on

import tcpwin

REFUSING = ("oscil_10mbit_300ms_170p2_guard",)
"""Nothing is lost on the path: the receiver refuses segments for lack of memory."""
RESENDING = (*REFUSING, *(scenario for scenario in ROUGH if scenario != "reorder_only_cubic"))
# More specific labels that a plain `retransmission` may carry.
REASONS = {"recovery_retransmission", "go_back_n", "lost_retransmission", "syn_retransmission"}
WITHOUT_SACK = ("loss1_reno_sack0",)
# Lost retransmissions are among the latter.
RECOVERY = ("fast_retransmissions", "recovery_retransmissions")
# The counter is ahead of the capture by the data queued in the tbf.
QUEUE_NS = 10 * MILLISECOND_NS
TICK_NS = 10 * MILLISECOND_NS  # HZ=100
# Relative difference between a computed round trip or timeout and the kernel's.
ERROR = 0.05
NO_CAUSE_HERE = (
    "syn_retransmissions",
    "fin_retransmissions",
    "fast_open_retransmissions",
    "zero_window_retransmissions",
    "unknown_retransmissions",
)


def total(direction: tcpwin.Direction, names: tuple[str, ...]) -> int:
    return sum(int(getattr(direction, name)) for name in names)


@on(ends=["snd"])
def test_resends_of_each_cause_are_the_kernels(run: Run) -> None:
    assert run.data.rto_retransmissions == run.counter("snd", "TcpExt.TCPTimeouts")
    assert run.data.go_back_n_retransmissions == run.counter("snd", "TcpExt.TCPSlowStartRetrans")
    assert total(run.data, RECOVERY) == run.counter("snd", "TcpExt.TCPFastRetrans")
    probes = run.counter("snd", "TcpExt.TCPLossProbes")
    reasons = ("TCPFastRetrans", "TCPSlowStartRetrans", "TCPTimeouts")
    resent = run.counter("snd", "Tcp.RetransSegs") - sum(run.counter("snd", f"TcpExt.{name}") for name in reasons)
    # None of them carried new data.
    assert resent == probes
    assert run.data.tail_loss_probes == probes


@on(ends=["snd"])
def test_recoveries_are_as_many_as_the_kernel_entered(run: Run) -> None:
    """One recovery may be missed: the kernel can enter one, see the segment SACKed, and resend nothing."""
    entered = run.counter("snd", "TcpExt.TCPSackRecovery") + run.counter("snd", "TcpExt.TCPRenoRecovery")
    assert entered - 1 <= run.data.recoveries <= entered
    assert run.data.fast_retransmissions == run.data.recoveries
    assert (run.data.recovery_ns > 0) == (entered > 0)


@on(ends=["snd"], copies=False)
def test_lost_retransmissions_are_the_kernels(run: Run) -> None:
    """TCPLostRetransmit counts a lost retransmission when it is detected: in recovery or at the timeout after it."""
    third = {each.passage.left.frame for each in resends(run) if len(each.earlier) > 1}
    assert len(third) == run.counter("snd", "TcpExt.TCPLostRetransmit")
    assert frames_of(run, "lost_retransmission") == third - frames_of(run, "rto_retransmission")
    assert run.data.lost_retransmissions == len(frames_of(run, "lost_retransmission"))


@on(ends=["snd"])
def test_causes_add_up_to_the_kernels_count_and_none_is_unknown(run: Run) -> None:
    data = run.data
    causes = (*RECOVERY, "rto_retransmissions", "go_back_n_retransmissions", "tail_loss_probes")
    assert total(data, (*causes, "spurious_retransmissions")) == run.counter("snd", "Tcp.RetransSegs")
    assert total(data, NO_CAUSE_HERE) == 0
    assert total(run.back, (*causes, *NO_CAUSE_HERE, "spurious_retransmissions")) == 0


@on(ends=["snd"])
def test_causes_are_seen_when_the_kernel_counted_them(run: Run) -> None:
    kinds = {
        "TCPTimeouts": ["rto_retransmission"],
        "TCPLossProbes": ["tail_loss_probe"],
        "TCPFastRetrans": ["fast_retransmission", "recovery_retransmission"],
    }
    for counter, events in kinds.items():
        times = times_of(run, frames_of(run, *events))
        for looked_ns, count in run.counters("snd", counter):
            before = sum(time_ns < looked_ns for time_ns in times)
            soon = sum(time_ns <= looked_ns + SS_DELAY_NS + QUEUE_NS for time_ns in times)
            assert before <= count <= soon, (counter, looked_ns)


@on(RESENDING, ends=["snd"], copies=False)
def test_every_segment_sent_again_is_a_resend_of_one_kind(run: Run) -> None:
    """Compared segment by segment, using the capture's bytes."""
    assert frames_resent(run) == {each.passage.left.frame for each in resends(run)}
    assert run.data.resent_segments == len(resends(run))
    assert run.data.resent_bytes == sum(each.passage.left.length for each in resends(run))
    for frame, names in names_by_frame(run).items():
        assert len(names & set(RESENT)) <= 1, frame
        assert not names & REASONS or names & {"retransmission"}, frame


def events_of(run: Run) -> list[tuple[Resend, tcpwin.Event]]:
    """Return every retransmission with tcpwin's event."""
    events = {event.frame: event for event in run.connection.events if event.cause is not None}
    return [(each, events[each.passage.left.frame]) for each in resends(run)]


@on(RESENDING, ends=["snd"], copies=False)
def test_an_event_tells_the_frames_and_times_of_its_resend(run: Run) -> None:
    segments = {int(frame): row for row, frame in enumerate(run.columns["frame"])}
    for each, event in events_of(run):
        last = each.earlier[-1].left
        assert (event.original_frame, event.age_ns) == (last.frame, each.passage.left.time_ns - last.time_ns)
        assert event.reason
        assert event.confidence in {"certain", "likely", "possible"}
        if event.trigger_frame is not None:
            trigger = segments[event.trigger_frame]
            assert event.trigger_frame < event.frame
            assert not run.from_sender[trigger]
            assert int(run.columns["flags"][trigger]) & ACK


@on(RESENDING, ends=["snd"], copies=False)
def test_a_recoverys_trigger_is_an_ack_of_the_moment(run: Run) -> None:
    """The trigger is an ACK, or RACK's timer: a quarter of the round trip later, at the next tick
    (tcp_rack_detect_loss).
    """
    rack_ns = run.rtt_ns // 4 + 2 * TICK_NS
    times = dict(zip(run.columns["frame"].tolist(), run.columns["time_ns"].tolist(), strict=True))
    for each, event in events_of(run):
        if event.cause == "fast":
            assert event.trigger_frame is not None
            assert each.passage.left.time_ns - times[event.trigger_frame] <= rack_ns


@on(RESENDING, ends=["snd"], copies=False)
def test_a_timeout_comes_the_rto_after_what_restarted_the_timer(run: Run) -> None:
    """icsk_rto in ss just before: nothing was acknowledged for that long; ticks make a timeout later, never earlier."""
    acks = [
        (int(time_ns), int(una))
        for time_ns, una, ours in zip(run.track.time_ns, run.track.una, run.from_sender, strict=True)
        if not ours
    ]
    for each, event in events_of(run):
        if event.cause != "rto":
            continue
        now_ns = each.passage.left.time_ns
        [*_, sample] = [sample for sample in run.samples("snd") if sample.time_ns < now_ns]
        rto_ns = sample.number("rto") * MILLISECOND_NS
        assert event.rto_ns is not None
        assert event.rto_ns == pytest.approx(rto_ns, rel=ERROR, abs=TICK_NS)
        una = max(una for time_ns, una in acks if time_ns < now_ns)
        progress_ns = min(time_ns for time_ns, each_una in acks if each_una == una)
        silent_ns = now_ns - max(progress_ns, each.earlier[-1].left.time_ns)
        assert rto_ns - TICK_NS <= silent_ns <= rto_ns + 2 * TICK_NS


@on(REFUSING, ends=["snd"], copies=False)
def test_a_probe_is_the_last_segment_after_two_round_trips(run: Run) -> None:
    """tcp_schedule_loss_probe: nothing sent or heard for 2 × SRTT, or the RTO where that is sooner, to the tick."""
    probes = [(each, event) for each, event in events_of(run) if event.cause == "tail_loss_probe"]
    assert len(probes) == run.counter("snd", "TcpExt.TCPLossProbes") > 0
    sent = data_way(run).data
    times = run.columns["time_ns"]
    for each, event in probes:
        now_ns = each.passage.left.time_ns
        [*_, sample] = [sample for sample in run.samples("snd") if sample.time_ns < now_ns]
        srtt_ns = float(sample.tokens["rtt"].partition("/")[0]) * MILLISECOND_NS
        timer_ns = min(2 * srtt_ns, sample.number("rto") * MILLISECOND_NS)
        quiet_ns = now_ns - int(times[times < now_ns].max())
        assert (1 - ERROR) * timer_ns - TICK_NS <= quiet_ns <= (1 + ERROR) * timer_ns + 2 * TICK_NS
        assert event.age_ns >= quiet_ns
        assert each.passage.end == max(other.end for other in sent if other.index <= each.passage.index)


@on(RESENDING, copies=False)
def test_resends_called_needless_were_needless(run: Run) -> None:
    """Spurious, at once or by later proof, is said only of resends whose bytes the receiver had.

    No run sent a DSACK: without SACK there are none, and with it no retransmission was needless.
    """
    data = run.data
    needless = [each for each in resends(run) if each.fate == "arrived"]
    assert data.dsacks == data.spurious_by_dsack == 0
    assert run.counter("rcv", "TcpExt.TCPDSACKOldSent") == run.counter("snd", "TcpExt.TCPDSACKRecv") == 0
    assert data.spurious_by_frto <= run.counter("snd", "TcpExt.TCPSpuriousRTOs")
    called = data.spurious_retransmissions + data.spurious_by_timestamps
    if run.end == "snd":
        assert called <= len(needless)
        return
    # At the receiver's end: already acknowledged when they came.
    duplicates = {each.passage.arrived.frame for each in needless if each.passage.arrived is not None}
    assert frames_of(run, "spurious_retransmission") == duplicates
    assert data.spurious_retransmissions == len(duplicates)


@on(WITHOUT_SACK, ends=["snd"], copies=False)
def test_the_go_back_n_was_all_needless_but_its_first(run: Run) -> None:
    """Ten of eleven: the receiver held the segments behind the hole, and could not say so without SACK."""
    again = [each for each in resends(run) if each.passage.left.frame in frames_of(run, "go_back_n")]
    assert [each.fate for each in again] == ["lost", *["arrived"] * 10]
