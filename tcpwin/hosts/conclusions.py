"""Conclusions from one sample of a socket without packets: the limit, and who should look.

In: a SocketSample. Out: a sentence, or None if nothing is unusual. A sample shows one instant, so a sentence includes
the numbers that it is based on.
"""

from __future__ import annotations

from tcpwin.hosts.socket import SocketSample
from tcpwin.units import bytes_text, count_text, share_text, time_text

LIMITED_SHARE = 0.5
"""Minimum share of the busy time for which a limit held the sender; below it, other limits had more."""
FULL_SHARE = 0.8
"""Share of the receive buffer above which little window is left (`__tcp_select_window`)."""
FEW_BACKOFFS = 2
"""Two timeouts may be chance losses."""
LOST_SHARE = 0.02
LONG_NS = 60_000_000_000


def conclude(sample: SocketSample) -> str | None:
    """Return what a sample shows, or None."""
    for conclude_one in (_probing, _repeating, _unread, _windowed, _buffered, _losing, _queued, _closing):
        text = conclude_one(sample)
        if text is not None:
            return text
    return None


def _timer(sample: SocketSample) -> str:
    return sample.timer.name if sample.timer is not None else ""


def _share(part_ns: int | None, sample: SocketSample) -> float:
    return (part_ns or 0) / sample.busy_ns if sample.busy_ns else 0.0


def _probing(sample: SocketSample) -> str | None:
    if _timer(sample) != "persist":
        return None
    share = _share(sample.rwnd_limited_ns, sample)
    closed = f"window closed for {share_text(share)} of its busy time, " if share else "window closed, "
    waiting = f", {bytes_text(sample.send_q_bytes)} waiting" if sample.send_q_bytes else ""
    backoff = sample.backoff or 0
    if sample.snd_wnd_bytes and sample.snd_wnd_bytes >= (sample.mss_bytes or 1):
        return (
            f"persist timer at backoff {backoff} although the peer's window is {bytes_text(sample.snd_wnd_bytes)}"
            f"{waiting}: this host's kernel does not use the window (a known defect; see its version)"
        )
    lasts = f": the peer's application has not read for {time_text(sample.lastsnd_ns)}" if sample.lastsnd_ns else ""
    return f"{closed}persist timer at backoff {backoff}{waiting}{lasts or ': the peer does not read'}"


def _repeating(sample: SocketSample) -> str | None:
    backoff = sample.backoff or 0
    if _timer(sample) != "on" or backoff < FEW_BACKOFFS:
        return None
    unacked = count_text(sample.unacked_segments or 0, "segment")
    silent = f" for {time_text(sample.lastack_ns)}" if sample.lastack_ns else ""
    if sample.state.startswith("SYN"):
        return f"handshake unanswered, {count_text(backoff, 'timeout')}: no such host, a firewall, or a full backlog"
    return (
        f"nothing acknowledged{silent}, retransmission timer at backoff {backoff} with {unacked} out: the peer is "
        "gone, or the path loses everything, or everything of this size (MTU)"
    )


def _unread(sample: SocketSample) -> str | None:
    if not sample.recv_q_bytes or sample.state == "LISTEN":
        return None
    fill = (sample.rmem_alloc_bytes or 0) / sample.rcvbuf_bytes if sample.rcvbuf_bytes else 0.0
    if fill >= FULL_SHARE:
        dropped = f", {sample.drops:,} packets dropped" if sample.drops else ""
        return (
            f"{bytes_text(sample.recv_q_bytes)} unread, receive buffer {share_text(fill)} full{dropped}: the "
            "application here does not read"
        )
    if sample.state == "CLOSE-WAIT":
        return f"{bytes_text(sample.recv_q_bytes)} unread after the peer closed: the application here does not read"
    return None


def _windowed(sample: SocketSample) -> str | None:
    share = _share(sample.rwnd_limited_ns, sample)
    if share < LIMITED_SHARE:
        return None
    window = f", {bytes_text(sample.snd_wnd_bytes)} now" if sample.snd_wnd_bytes is not None else ""
    return f"limited by the peer's receive window for {share_text(share)} of its busy time{window}"


def _buffered(sample: SocketSample) -> str | None:
    share = _share(sample.sndbuf_limited_ns, sample)
    if share < LIMITED_SHARE:
        return None
    size = f" of {bytes_text(sample.sndbuf_bytes)}" if sample.sndbuf_bytes else ""
    return f"limited by its send buffer{size} for {share_text(share)} of its busy time: raise net.ipv4.tcp_wmem"


def _losing(sample: SocketSample) -> str | None:
    sent, again = sample.bytes_sent or 0, sample.bytes_retrans or 0
    if not sent or again < LOST_SHARE * sent or not again:
        return None
    return f"{share_text(again / sent)} of its bytes retransmitted ({bytes_text(again)} of {bytes_text(sent)})"


def _queued(sample: SocketSample) -> str | None:
    if not sample.rtt_ns or not sample.minrtt_ns or sample.rtt_ns < 4 * sample.minrtt_ns:
        return None
    return (
        f"round trip {time_text(sample.rtt_ns)} against {time_text(sample.minrtt_ns)} at least: a queue on the path "
        f"holds {time_text(sample.rtt_ns - sample.minrtt_ns)}"
    )


def _closing(sample: SocketSample) -> str | None:
    if sample.state == "CLOSE-WAIT" and (sample.lastrcv_ns or 0) >= LONG_NS:
        return f"the peer closed {time_text(sample.lastrcv_ns or 0)} ago: the application here has not"
    return None
