"""Zero windows are those that the receiver's kernel advertised: number, time, duration, and probes.

TCPToZeroWindowAdv and TCPFromZeroWindowAdv count a window closing and opening (tcp_select_window), TCPWinProbe the
sender's probes. No ACK was lost in any run, so both ends see every one, half a round trip apart.
"""

from __future__ import annotations

import itertools

import pytest
from lab.agreement import SS_DELAY_NS, samples_inside
from lab.runs import MILLISECOND_NS, SECOND_NS, Run
from lab.selection import SLOW_READER, STALL, on
from lab.ss_text import Sample

TICK_NS = 10 * MILLISECOND_NS  # HZ=100


def way_delay_ns(run: Run) -> int:
    """Return the delay with which this capture sees the receiver's segments."""
    return run.rtt_ns // 2 if run.end == "snd" else 0


@on()
def test_episodes_probes_and_keep_alives_are_as_many_as_the_kernels_counted(run: Run) -> None:
    opened = run.counter("rcv", "TcpExt.TCPFromZeroWindowAdv")
    closed = run.counter("rcv", "TcpExt.TCPToZeroWindowAdv")
    episodes = run.data.zero_window_episodes
    assert len(episodes) == run.data.zero_window_episode_count == closed
    assert sum(episode.ended_by != "open" for episode in episodes) == opened
    assert run.data.zero_window_ns == sum(episode.duration_ns for episode in episodes)
    assert run.back.zero_window_episode_count == run.counter("snd", "TcpExt.TCPToZeroWindowAdv")
    assert run.data.zero_window_probes == run.counter("snd", "TcpExt.TCPWinProbe")
    assert sum(episode.probes for episode in episodes) == run.data.zero_window_probes
    # A probe that crosses the update looks like a keep-alive, but is still a probe.
    assert run.data.keep_alives == run.counter("snd", "TcpExt.TCPKeepAlive")
    assert run.back.keep_alives == run.counter("rcv", "TcpExt.TCPKeepAlive")


@on()
def test_episodes_begin_and_end_when_the_kernel_counted_them(run: Run) -> None:
    delay_ns = way_delay_ns(run)
    for name, times in (
        ("TCPToZeroWindowAdv", [episode.start_ns for episode in run.data.zero_window_episodes]),
        ("TCPFromZeroWindowAdv", [episode.end_ns for episode in run.data.zero_window_episodes]),
    ):
        for looked_ns, count in run.counters("rcv", name):
            before = sum(time_ns - delay_ns < looked_ns for time_ns in times)
            soon = sum(time_ns - delay_ns <= looked_ns + SS_DELAY_NS for time_ns in times)
            assert before <= count <= soon, (name, looked_ns)


@on()
def test_segments_with_a_zero_window_are_the_closings_and_the_answers_to_probes(run: Run) -> None:
    """A probe is answered with the current window: zero, unless it has opened meanwhile."""
    closed = run.counter("rcv", "TcpExt.TCPToZeroWindowAdv")
    probed = run.counter("snd", "TcpExt.TCPWinProbe")
    # In the other runs the window opened while the probe was under way.
    answered = probed if run.scenario in STALL else 0
    assert run.data.zero_window_segments == closed + answered
    answers = [episode.ended_by for episode in run.data.zero_window_episodes]
    assert answers == ["update"] * closed


@on()
def test_the_window_is_zero_at_a_sample_exactly_inside_episodes(run: Run) -> None:
    """ss omits a zero snd_wnd; at the receiver the sender's samples count half a round trip earlier."""
    early_ns = 0 if run.end == "snd" else run.rtt_ns // 2
    samples = samples_inside(run, "snd", early_ns=early_ns)
    spans = [(episode.start_ns, episode.end_ns) for episode in run.data.zero_window_episodes]
    for sample in samples:
        time_ns = sample.time_ns - early_ns
        surely = any(start <= time_ns and time_ns + SS_DELAY_NS < end for start, end in spans)
        perhaps = any(start <= time_ns + SS_DELAY_NS and time_ns < end for start, end in spans)
        is_zero = sample.number("snd_wnd") == 0
        assert surely <= is_zero <= perhaps, sample
    if run.scenario in STALL and run.end == "snd":
        assert sum(sample.number("snd_wnd") == 0 for sample in samples) >= 10


@on(STALL)
def test_the_stall_lasts_until_the_reader_reads_again(run: Run) -> None:
    """The plan: read for one second, stop for five. The window opens at the first read after that."""
    [episode] = run.data.zero_window_episodes
    reads_ns, stalls_ns = (int(seconds * SECOND_NS) for seconds in run.meta["scenario"]["reader"]["plan"][0])
    connected_ns = int(float(run.reader["t_connect"]) * SECOND_NS)
    opens_ns = connected_ns + reads_ns + stalls_ns
    assert 0 <= episode.end_ns - way_delay_ns(run) - opens_ns <= TICK_NS
    # It closes once the buffer is full: after the reader stopped, before ss first finds no window.
    zero = next(sample for sample in run.samples("snd") if sample.number("snd_wnd") == 0)
    seen_ns = zero.time_ns - run.rtt_ns // 2
    assert connected_ns + reads_ns < episode.start_ns - way_delay_ns(run) <= seen_ns
    idle = {second for second, mbps in enumerate(run.reader["per_second_mbps"]) if mbps == 0}
    assert set(range(2, 6)) <= idle


@on(STALL)
def test_the_stalls_probes_back_off(run: Run) -> None:
    """Four zero-window ACKs; probes about 0.3, 0.6 and 1.2 s apart.

    The timer of RTO << backoff is armed by an ACK: the one that closed the window, then each probe's answer, a round
    trip after the probe. It expires up to two ticks late, and up to nine from 64 ticks on (kernel/time/timer.c).
    """
    [episode] = run.data.zero_window_episodes
    [rto_ns] = {int(sample.tokens["rto"]) * MILLISECOND_NS for sample in run.samples("snd") if is_closed(sample)}
    trip_ns = run.rtt_ns if run.end == "rcv" else 0
    times = probe_times_ns(run)
    waits = [after - before for before, after in itertools.pairwise([episode.start_ns, *times])]
    least = [rto_ns + trip_ns, 2 * rto_ns + run.rtt_ns, 4 * rto_ns + run.rtt_ns]
    late = [2 * TICK_NS, 2 * TICK_NS, 9 * TICK_NS]
    assert len(waits) == len(least) == episode.probes
    assert all(low <= wait <= low + more for wait, low, more in zip(waits, least, late, strict=True)), waits
    assert episode.first_probe_after_ns == waits[0]
    assert episode.last_probe_interval_ns == waits[2]


def is_closed(sample: Sample) -> bool:
    return sample.number("snd_wnd") == 0


def probe_times_ns(run: Run) -> list[int]:
    is_probe = ["zero_window_probe" in str(names).split("|") for names in run.columns["events"]]
    return [int(time_ns) for time_ns in run.columns["time_ns"][is_probe]]


@on(STALL, ends=["snd"])
def test_the_senders_backoff_is_the_number_of_probes(run: Run) -> None:
    """icsk_backoff increases with every probe and is reset when the window opens."""
    episodes = run.data.zero_window_episodes
    times = probe_times_ns(run)
    for sample in filter(is_closed, samples_inside(run, "snd")):
        starts = [episode.start_ns for episode in episodes if episode.start_ns <= sample.time_ns + SS_DELAY_NS]
        probes = sum(starts[-1] <= time_ns <= sample.time_ns for time_ns in times)
        assert sample.number("backoff") == probes, sample


@on(SLOW_READER)
def test_the_slow_readers_windows_open_when_it_reads(run: Run) -> None:
    """It reads every 200 ms, slightly later each time because of timer slack; the window opens at some of its reads."""
    period_ns = int(run.meta["scenario"]["reader"]["interval"] * SECOND_NS)
    reads = round(run.meta["scenario"]["reader"]["seconds"] * SECOND_NS / period_ns)
    connected_ns = int(float(run.reader["t_connect"]) * SECOND_NS)
    # The first read waits a round trip for the first data.
    first_ns = connected_ns + run.rtt_ns
    slack_ns = (run.read_seconds * SECOND_NS - run.rtt_ns) / reads - period_ns
    for episode in run.data.zero_window_episodes:
        opened_ns = episode.end_ns - way_delay_ns(run) - first_ns
        read = round(opened_ns / (period_ns + slack_ns))
        assert opened_ns == pytest.approx(read * (period_ns + slack_ns), abs=2 * MILLISECOND_NS)
        assert episode.duration_ns < period_ns
