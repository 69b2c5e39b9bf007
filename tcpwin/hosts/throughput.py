"""Result of a throughput test for one interval, or in total.

In: a row of iperf3's text or an object of its JSON. Out: ThroughputSample. Text has the three digits that iperf3
prints; JSON is exact.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ThroughputSample:
    """One interval of one stream, or of all streams, or a summary.

    Attributes:
        time_ns: time of the interval's end, nanoseconds since the epoch by the host's clock; None if the file does not
            show when the test began.
        line: line number in its file, from 1; in JSON, the first line of its document or event.
        run: index of the test in the file, from 0.
        stream: iperf3's number of the stream (its socket); None for the sum of all.
        start_ns, end_ns: interval since the start of the test.
        transferred_bytes: payload; K, M, G and T are powers of 1024 here.
        rate_bps: bits per second; K, M, G and T are powers of 1000 here. A rate in bytes (-f K) times eight.
        retransmissions: number in the interval; None at a receiver, and on systems that do not count them.
        cwnd_bytes: congestion window at the interval's end; the kernel's segments times its MSS.
        snd_wnd_bytes: the peer's window; only in a sender's JSON, like the following ones.
        rtt_ns, rttvar_ns: smoothed round trip and its deviation.
        pmtu_bytes: path MTU.
        is_summary: whether it covers the whole test.
        is_omitted: whether it is in the time that -O excludes from the summary.
        side: sender or receiver, whichever measured a summary; for an interval, only if the JSON names it.
        role: TX-C, RX-C, TX-S or RX-S in a bidirectional test (--bidir).
    """

    time_ns: int | None
    line: int
    run: int
    stream: int | None
    start_ns: int
    end_ns: int
    transferred_bytes: int
    rate_bps: float
    retransmissions: int | None = None
    cwnd_bytes: int | None = None
    snd_wnd_bytes: int | None = None
    rtt_ns: int | None = None
    rttvar_ns: int | None = None
    pmtu_bytes: int | None = None
    is_summary: bool = False
    is_omitted: bool = False
    side: str | None = None
    role: str | None = None
