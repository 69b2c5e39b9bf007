"""## What it finds

The peer stopped answering: data was never acknowledged, or probes and keep-alives went unanswered, until the capture
ended or the connection was reset.

## Why it matters

The connection hangs. The sender retransmits at ever longer intervals, on Linux for about fifteen minutes
(`net.ipv4.tcp_retries2`), before its application gets an error. The peer may be gone (power, crash, a sleeping laptop),
or a firewall, NAT or route on the path no longer passes its packets.

## How it is judged

When the capture ended or a RST arrived, one of these held: data had been in flight for longer than its retransmission
timeout (RFC 6298, at least 200 ms on Linux) and for at least `stall_ns` since it was sent or the last acknowledgment
arrived; or three or more retransmissions, probes or keep-alives, each sent by a separate timer, went unanswered. After
`dead_ns`, or once the peer counts as silent, the finding is an error, before that a warning. The cost is that time. If
the capture continues after the connection's last packet, at most two minutes are added, the longest retransmission
timer.

The finding is at most possible if the sender retransmitted nothing although its timer should have expired, or if no
segment of the peer was captured at all: the capture may lack the answers. Data that is not retransmitted for a minute
was answered, and a capture that lacks more of the data than it contains proves nothing.

If the same hosts used another connection during the silence, a device on the path drops this one. If the capture was
made near the receiver, the same data arrived three times, and the receiver still asks for it, its host drops the data.

## When it is wrong

A capture that lost the answers, or contains only one direction from some point on, looks similar, but then new data
continues to be sent. While the stall is shorter than a few timeouts, an acknowledgment that was still under way when
the capture stopped cannot be distinguished from one that was never sent; a longer capture can.

## What to do

Check that the peer is up and reachable, and look for stateful devices on the path: NATs and firewalls drop idle
connections from their tables after minutes. Let applications limit how long they wait (TCP_USER_TIMEOUT on Linux).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcpwin.analysis import Event
from tcpwin.limits.case import Case
from tcpwin.limits.evidence.alive import Alive, Refusing, alive_elsewhere, refusing
from tcpwin.limits.evidence.capture import rows_of
from tcpwin.limits.evidence.events import events_of
from tcpwin.limits.evidence.packets import packets_of, sent_of
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity, of_many
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import bytes_text, count_text, time_text

KINDS = ("unacknowledged", "peer_silent")
ASKING = {
    "retransmission": "retransmission",
    "fast_retransmission": "retransmission",
    "recovery_retransmission": "retransmission",
    "rto_retransmission": "retransmission",
    "lost_retransmission": "retransmission",
    "go_back_n": "retransmission",
    "tail_loss_probe": "retransmission",
    "zero_window_probe": "window probe",
    "keep_alive": "keep-alive",
}
"""Events of segments that solicit an answer, and what they are called."""
"""Events of segments that solicit an answer."""
FRAMES = 6
OVERDUE_NS = 1_500_000_000
"""By then even a one-second timer (RFC 6298 §2.4), the longest on short round trips, has expired and been seen."""


def judge(case: Case) -> Iterator[Finding]:
    data = case.data
    kind, start_ns = data.stall_at_end, data.stall_at_end_start_ns
    if kind not in KINDS or start_ns is None or data.missed_bytes > data.unique_bytes:
        return
    sacked = _sacked_bytes(case)
    asked = [each for each in events_of(case, *ASKING, side=case.sender) if each.time_ns >= start_ns]
    waiting = max(data.unique_bytes + data.missed_bytes - data.acked_bytes - sacked, 0)
    is_silent = kind == "peer_silent"
    unanswered = _waiting_frames(case, asked, waiting)
    alive, refused = alive_elsewhere(case, start_ns), refusing(case, start_ns)
    limits: tuple[str, ...]
    if refused is not None:
        blame, limits, clause = "host", ("receiver_memory",), _refused_words(refused)
    elif alive is not None and is_silent:
        blame, limits, clause = "network", ("middlebox",), _alive_words(alive)
    else:
        blame, limits, clause = "network", (), _closed_words(case)
    yield case.finding(
        f"{_text(case, asked, waiting, sacked)}{clause}",
        owner=blame,
        limits=limits,
        side=case.receiver,
        confidence=_confidence(case),
        cost_ns=data.stall_at_end_ns,
        severity=Severity.ERROR if is_silent or data.stall_at_end_ns >= case.settings["dead_ns"] else None,
        evidence=Evidence(
            frames=(*unanswered, *(each.frame for each in asked[:FRAMES])),
            start_ns=start_ns,
            end_ns=start_ns + data.stall_at_end_ns,
            values={
                "stall_at_end": kind,
                "stall_at_end_ns": data.stall_at_end_ns,
                "tries": data.stall_at_end_tries,
                "unacknowledged_bytes": waiting,
                **({"sacked_bytes": sacked} if sacked else {}),
            },
            ruled_out=(
                "Not a lost acknowledgment: the repeated packets were not answered either."
                if is_silent
                else "Not ordinary data in flight: it is older than its retransmission timeout."
            ),
            frames_of=of_many("first", min(len(asked), FRAMES), len(asked), "last data and the" if unanswered else ""),
        ),
        remedy=Remedy(
            _advice(case, alive if is_silent else None, refused)
            + f" Limit how long {case.the_sender} waits: socket option TCP_USER_TIMEOUT, in milliseconds.",
            side_effects="A sender that gives up closes the connection; data still in transit is lost.",
        ),
    )


def _sacked_bytes(case: Case) -> int:
    """Return how much the receiver has behind the first byte that it lacks."""
    packets = packets_of(case) if case.data.stall_at_end == "unacknowledged" else None
    sent = None if packets is None else sent_of(packets, case.sender)
    if sent is None or (sent.acked_ns >= 0).all():
        return 0
    behind = (sent.acked_ns >= 0) & (sent.start > sent.start[sent.acked_ns < 0].min())
    return sum(dict(zip(sent.start[behind].tolist(), sent.length[behind].tolist(), strict=True)).values())


def _refused_words(refused: Refusing) -> str:
    return (
        f"; yet it received the same data {count_text(refused.arrived, 'time')}, and frame {refused.spoken_frame} "
        "still asks for it: its host drops what arrives"
    )


def _alive_words(alive: Alive) -> str:
    did = "opened" if alive.has_begun else "used"
    return (
        f". Meanwhile it {did} another connection of the same hosts (connection {alive.connection}): a device on the "
        "path drops this one"
    )


def _closed_words(case: Case) -> str:
    if case.data.receive_window_last_bytes != 0:
        return ""
    return ". It had closed its receive window, and answered no probe"


def _advice(case: Case, alive: Alive | None, refused: Refusing | None) -> str:
    if refused is not None:
        return (
            f"Find out why {case.the_receiver}'s host drops what arrives: `nstat` there (TcpInCsumErrors, "
            "TcpExtTCPRcvQDrop, TcpExtPAWSEstab), its firewall, and checksum offload."
        )
    if alive is not None:
        return (
            "Find the firewall, NAT or load balancer that drops this connection: look for its state table, its "
            "time-outs, and routes that differ by direction."
        )
    if case.data.receive_window_last_bytes == 0:
        return (
            f"Find out why {case.the_receiver}'s application stopped reading before it fell silent, and why its host "
            "does not answer window probes."
        )
    return f"Check that {case.the_receiver} is up and reachable, and that nothing on the path drops connection state."


def _confidence(case: Case) -> str:
    """Return the confidence: a peer never captured may have answered, and so may one whose sender set no timer."""
    data = case.data
    is_overdue = not data.stall_at_end_tries and data.stall_at_end_ns > max(2 * (data.rto_ns or 0), OVERDUE_NS)
    if is_overdue or not case.back.segments:
        return "possible"
    return "certain" if data.stall_at_end == "peer_silent" else "likely"


def _waiting_frames(case: Case, asked: Sequence[Event], waiting: int) -> tuple[int, ...]:
    """Return the last data sent before the first try, if it was not acknowledged."""
    if not waiting and asked:
        return ()
    data = [row["frame"] for row in rows_of(case) if row["direction"] == case.sender and row["length"]]
    return tuple(frame for frame in data if not asked or frame < asked[0].frame)[-1:]


def _tries_text(asked: Sequence[Event], tries: int) -> str:
    """Count the tries, named by the kinds of segments that solicited an answer."""
    kinds = {name for each in asked for name in each.names if name in ASKING}
    words = [word for word in dict.fromkeys(ASKING.values()) if kinds & {k for k, v in ASKING.items() if v == word}]
    several = [f"{word}s" for word in words or dict.fromkeys(ASKING.values())]
    one = words[0] if len(words) == 1 else "packet"
    return count_text(tries, one, " and ".join(filter(None, (", ".join(several[:-1]), several[-1]))))


def _text(case: Case, asked: Sequence[Event], waiting: int, sacked: int) -> str:
    by, tries = case.connection.reset_by, case.data.stall_at_end_tries
    end = f"until {case.the(by)} reset the connection" if by else "to the end of the capture"
    lasted = time_text(case.data.stall_at_end_ns)
    if case.data.stall_at_end == "peer_silent":
        return (
            f"{case.the_receiver} was silent for {lasted}, {end}: {case.the_sender} sent {_tries_text(asked, tries)}, "
            "and nothing came back"
        )
    again = f", although it was retransmitted {count_text(tries, 'time')}" if tries else ""
    though = f", although it has {bytes_text(sacked)} behind them (SACK)," if sacked else ""
    return f"{case.the_receiver} did not acknowledge {bytes_text(waiting)}{though} for {lasted}, {end}{again}"


RULE = Rule(
    code="TW506",
    name="peer-silent",
    title="data or probes that the peer never answered",
    severity=Severity.WARNING,
    scope="direction",
    limits=("peer_silent",),
    judge=judge,
    page=__doc__,
    when=(("stall_at_end_ns", ">=", "{stall_ns}"),),
    thresholds={
        "stall_ns": Threshold(200_000_000, "ns", "Linux's shortest retransmission timeout; less is barely noticeable."),
        "dead_ns": Threshold(
            10e9, "ns", "By then Linux has retransmitted five times (0.2 s, doubling each time): not a chance loss."
        ),
    },
)
