"""The path of a capture: everything one connection shows about its path, its hosts and their applications.

In: a connection with its snapshots. Out: Path, each value with its range and how it is known, or why it is not. It
measures nothing itself: it combines results of the engine, the verdict and the hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tcpwin.analysis import Direction, DirectionName
from tcpwin.limits import Algorithm, Connection, Finding, Life, algorithms_of, life_of
from tcpwin.paths.ends import End, ends_of
from tcpwin.units import count_text, rate_text, share_text, time_text

RATE_ERROR = 0.1
"""The plateau of delivery rates was within 10 % of the link's rate in 58 of 70 random worlds."""
UNFILLED_ERROR = 0.2
"""The same if the path was never full: bursts leave the sender faster than the path's mean rate."""
RANDOM, QUEUE = "random", "queue"
LEAST_SHARE = 0.02
"""Share of the life: an application that limited for less does not count as slow."""


@dataclass(frozen=True, slots=True)
class Known:
    """One value of a path.

    Attributes:
        value: the value, in the unit that the field's name ends with; None if unknown.
        low, high: its range; None if unbounded.
        how: how it is known, or why it is not, in a sentence.
    """

    value: float | None
    low: float | None
    high: float | None
    how: str


@dataclass(frozen=True, slots=True)
class Path:
    """A connection's path in the direction of its data.

    Attributes:
        rate_bps: payload rate of the bottleneck, bits per second.
        round_trip_ns: the minimum; `queue_ns` is the additional queueing delay, on average and up to `high`.
        jitter_ns: mean deviation of the round trip, queues included.
        loss_share: share of the data segments; `loss_kind` is ``random``, ``queue`` (a queue overflowed), or None
            without loss or if unknown.
        ack_loss_share: share of the receiver's packets.
        reader_bps, writer_bps: the pace of an application that was the limit; None if it kept up.
        send_buffer_bytes: payload in flight that the sender's buffer allows.
        algorithm: the sender's congestion control; None if unknown.
        sender, receiver: the ends, each with its settings and kernel.
        notes: about settings of unknown ends.
    """

    connection: int
    direction: DirectionName
    rate_bps: Known
    round_trip_ns: Known
    queue_ns: Known
    jitter_ns: Known
    loss_share: Known
    loss_kind: str | None
    ack_loss_share: Known
    reader_bps: Known
    writer_bps: Known
    send_buffer_bytes: Known
    algorithm: Algorithm | None
    sender: End
    receiver: End
    notes: tuple[str, ...]


def fit_path(
    connection: Connection, direction: DirectionName | None = None, *, findings: Sequence[Finding] | None = None
) -> Path | None:
    """Return the path of a connection, or None if it carried no data.

    Args:
        direction: direction of the data, ``a_to_b`` or ``b_to_a``; by default the verdict's.
        findings: the connection's findings; by default all rules are applied.
    """
    direction = direction or connection.verdict.direction
    if direction is None:
        return None
    data, back = (connection.a_to_b, connection.b_to_a)[:: 1 if direction == "a_to_b" else -1]
    life = life_of(connection, direction, findings)
    sender, receiver, notes = ends_of(connection, direction)
    kind, loss = _loss(data, life)
    return Path(
        connection=connection.id,
        direction=direction,
        rate_bps=_rate(data, life),
        round_trip_ns=_round_trip(connection, data),
        queue_ns=_queue(data),
        jitter_ns=_known(data.rtt_variance_ns, "mean deviation of round trips, as Linux smooths it"),
        loss_share=loss,
        loss_kind=kind,
        ack_loss_share=_ack_loss(data, back),
        reader_bps=_pace(life, "receiver_application", "reader"),
        writer_bps=_pace(life, "sender_application", "writer"),
        send_buffer_bytes=_send_buffer(connection, sender),
        algorithm=algorithms_of(connection)[direction],
        sender=sender,
        receiver=receiver,
        notes=notes,
    )


def _known(value: float | None, how: str, unknown: str = "the capture does not show it") -> Known:
    return Known(value, value, value, how) if value is not None else Known(None, None, None, unknown)


def _rate(data: Direction, life: Life) -> Known:
    least = data.goodput_bps
    if not data.path_rate_bps:
        return Known(None, least, None, "data never arrived at a steady rate of the path: it carries at least this")
    share = life.times_ns.get("path_rate", 0) / max(life.total_ns, 1)
    how = "the plateau of the delivery rates" + (f", which filled {share_text(share)} of the time" if share else "")
    rate, error = data.path_rate_bps, rate_error(life)
    return Known(rate, rate * (1 - error), rate * (1 + error), how)


def rate_error(life: Life) -> float:
    """Return the relative error of the path's rate."""
    return RATE_ERROR if life.times_ns.get("path_rate", 0) > LEAST_SHARE * life.total_ns else UNFILLED_ERROR


def _round_trip(connection: Connection, data: Direction) -> Known:
    rtt = connection.path_rtt_ns
    if rtt:
        where = "between the ends" if data.view == "between" else f"near the {data.view}"
        return _known(rtt, f"the minimum round trip, including the handshake; captured {where}")
    if data.rtt_min_ns:
        return Known(data.rtt_min_ns, data.rtt_min_ns, None, "from the capture point only: the whole path takes longer")
    return _known(None, "", "no data or handshake was answered within the capture")


def _queue(data: Direction) -> Known:
    if data.queue_mean_ns is None:
        return _known(None, "", "the capture does not show it")
    return Known(data.queue_mean_ns, 0, data.queue_max_ns, "queueing delay: mean and maximum")


def _loss(data: Direction, life: Life) -> tuple[str | None, Known]:
    needless = data.spurious_by_dsack + data.spurious_by_timestamps + data.spurious_by_frto
    needless += data.spurious_retransmissions
    others = data.zero_window_retransmissions + data.fast_open_retransmissions + data.syn_retransmissions
    sent = data.data_segments
    resent = max(data.retransmissions - others, 0)
    lost = max(resent - needless, 0)
    if not sent:
        return None, _known(None, "", "no data was captured")
    if data.view == "receiver" and not lost:
        resent = lost = data.previous_segment_missing
    if not resent:
        return None, Known(0.0, 0.0, 3 / sent, "no segment was retransmitted")
    share = lost / sent
    path_ns, loss_ns = life.times_ns.get("path_rate", 0), life.times_ns.get("path_loss", 0)
    policed = life.times_ns.get("path_policer", 0)
    kind = None
    words = "it is unknown whether a queue dropped them"
    if loss_ns > path_ns + policed:
        kind, words = RANDOM, "they occurred below the path's rate: at random, or because of other traffic"
    elif path_ns > LEAST_SHARE * life.total_ns:
        kind, words = QUEUE, "they occurred while the path was full: its queue overflowed"
    how = f"{count_text(resent, 'segment')} of {sent:,} retransmitted; {words}"
    return kind, Known(share, share / 2, resent / sent, how)


def _ack_loss(data: Direction, back: Direction) -> Known:
    if data.acks_missing is None:
        return _known(None, "", "the receiver's packets are not numbered (IP identification)")
    seen = back.segments
    share = data.acks_missing / max(seen + data.acks_missing, 1)
    return _known(share, "gaps in the IP identification of the receiver's packets")


def _pace(life: Life, limit: str, who: str) -> Known:
    ns = life.times_ns.get(limit, 0)
    if not ns or ns < LEAST_SHARE * life.total_ns:
        return _known(None, "", f"the {who} kept up")
    rate = life.carried_bytes(limit) * 8e9 / ns
    if not rate:
        return _known(0.0, f"nothing arrived in {time_text(ns)} of waiting for the {who}")
    how = f"data that arrived in {time_text(ns)} of waiting for the {who}"
    return Known(rate, 0.0, life.carried.bytes * 8e9 / ns, how)


SEND_SHARE = (0.6, 0.95, 1.1)
"""Share of a send buffer that is payload in flight: minimum, usual and maximum in the lab. The kernel counts the
segments' memory, and a socket may overshoot (`sk_stream_memory_free`, include/net/sock.h).
"""


def _send_buffer(connection: Connection, sender: End) -> Known:
    samples = connection.socket_samples.get(sender.side, ())
    sizes = [sample.sndbuf_bytes for sample in samples if sample.sndbuf_bytes]
    allowed = sender.sizes("tcp_wmem")
    low, usual, high = SEND_SHARE
    if allowed is not None:
        size, how = allowed[2], f"tcp_wmem of the sender, {sender.how}"
    elif sizes:
        size, how = max(sizes), "the largest buffer of the sender's socket in a snapshot; it may have grown"
    else:
        return _known(None, "", "neither settings of the sender nor a snapshot of its socket")
    return Known(usual * size, low * size, high * size if allowed is not None else None, how)


def path_rows(path: Path) -> list[tuple[str, str, str]]:
    """Return each value as text: name, value with its range, how it is known."""
    rows = [
        ("rate", _range(path.rate_bps, rate_text), path.rate_bps.how),
        ("round trip", _range(path.round_trip_ns, time_text), path.round_trip_ns.how),
        ("queue", _range(path.queue_ns, time_text), path.queue_ns.how),
        ("jitter", _range(path.jitter_ns, time_text), path.jitter_ns.how),
        ("loss", _range(path.loss_share, _percent), path.loss_share.how),
        ("ACK loss", _range(path.ack_loss_share, _percent), path.ack_loss_share.how),
        ("reader", *_pace_words(path.reader_bps)),
        ("writer", *_pace_words(path.writer_bps)),
    ]
    algorithm = path.algorithm
    shown = "not known" if algorithm is None else f"{algorithm.name} ({algorithm.confidence})"
    rows.append(("algorithm", shown, "" if algorithm is None else algorithm.evidence))
    for end in (path.sender, path.receiver):
        what = "tcp_wmem" if end.role == "sender" else "tcp_rmem"
        parts = [f"Linux {end.release}"] if end.release else []
        value = end.settings.get(f"net.ipv4.{what}")
        parts += [f"{what} {value}"] if value else []
        rows.append((f"{end.role} ({end.name})", ", ".join(parts) or "not known", end.how or "no snapshot of it"))
    return rows


def _pace_words(known: Known) -> tuple[str, str]:
    """Format an application's pace; one that kept up has none."""
    if known.value is None:
        return "kept up", ""
    return (_range(known, rate_text) if known.value else "paused"), known.how


def _percent(share: float) -> str:
    return share_text(share, places=2 if 0 < share < LEAST_SHARE else 0)


def _range(known: Known, words: Callable[[float], str]) -> str:
    if known.value is None:
        return f"at least {words(known.low)}" if known.low else "not known"
    shown = words(known.value)
    if known.low is None or known.high is None or known.low == known.value == known.high:
        return shown
    return f"{shown} ({words(known.low)} to {words(known.high)})"
