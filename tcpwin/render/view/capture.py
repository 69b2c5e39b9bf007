"""A capture in words: its answer, and its quality.

In: an analysis. Out: sentences, and remarks, the most serious first.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcpwin.analysis import Capture
from tcpwin.limits import LIMIT_NAMES, Analysis, Connection
from tcpwin.render.view.verdict import VerdictView, view_verdict
from tcpwin.units import bytes_text, count_text, name_text

WHOLE = "no drops, gaps, duplicates or damage found"


@dataclass(frozen=True, slots=True)
class CaptureView:
    """The answer about a capture.

    Attributes:
        lead: the data it carried, and its limit or the number of connections with a problem.
        worst: label of the connection that `verdict` is on: ``Worst``; empty if it is the only one.
        verdict: verdict on the worst connection; None without one, or if findings of sound connections are the answer.
        caveat: what the capture lacks; empty for a complete one.
        next: what to look at if `verdict` has no fix because the handshake failed; else empty.
    """

    lead: str
    worst: str
    verdict: VerdictView | None
    caveat: str
    next: str


def view_capture(analysis: Analysis) -> CaptureView:
    """Describe the answer about a capture in words."""
    summary, verdict, count = analysis.summary, analysis.verdict, len(analysis)
    shown = None if verdict is None else view_verdict(verdict)
    answer, worst = "", ""
    if shown is not None and count == 1:
        answer = shown.answer
    elif summary.problems:
        limits = ", ".join(f"{LIMIT_NAMES[limit]} ({len(ids):,})" for limit, ids in summary.problems.items())
        answer = f"{len(analysis.problems):,} with a problem: {limits}."
    elif summary.serious:
        answer, shown = f"No connection lost time. Also found: {summary.serious}.", None
    elif count:
        answer = "No problem found."
    if verdict is not None and count > 1:
        worst = "Worst" if verdict.is_problem else "Slowest" if verdict.lost_ns else "Most data"
    step = "" if shown is None or shown.fix else _next_step(analysis.connections[analysis.worst(1)[0].id])
    return CaptureView(name_text(f"{summary.carried} {answer}".rstrip()), worst, shown, summary.caveat, step)


def _next_step(connection: Connection) -> str:
    """Return what to look at if a connection was refused or never answered; else an empty string."""
    server = connection.b
    steps = {
        "refused": f"whether a service listens on {server}, and whether a firewall answers for it.",
        "unanswered": f"whether {server.address} is up, and whether a firewall drops SYNs to port {server.port}.",
    }
    return steps.get(connection.close, "")


def quality_remarks(capture: Capture) -> list[str]:
    """Describe the defects of a capture that weaken its numbers, most serious first."""
    remarks = [f"damaged: {name_text(warning.message)} (at byte {warning.byte_offset})" for warning in capture.warnings]
    kinds = ", ".join(f"LINKTYPE {link}" for link, _ in capture.unknown_link_types)
    counted = [
        (capture.interface_drops or 0, "packet", "dropped by the capturing interface"),
        (capture.connections_one_way, "connection", "with only one side captured"),
        (capture.connections_without_syn, "connection", "without its SYN"),
        (capture.unknown_link, "frame", f"of an unsupported link type ({kinds})"),
        (capture.capture_duplicates, "segment", "captured twice, counted once"),
        (capture.time_backwards, "packet", "with a time earlier than the previous packet's"),
        (capture.header_cut + capture.options_cut, "TCP header", "truncated by the snapshot length"),
        (capture.datagrams_incomplete, "fragmented datagram", "incomplete"),
        (capture.malformed, "frame", "with malformed headers"),
        (
            capture.super_segments,
            "segment",
            "larger than the MSS: offload, or an MSS lowered on the path",
        ),
    ]
    if capture.packets and capture.first_time_ns is None:
        remarks.append("no packet has a time: durations, rates and round trips are meaningless")
    if capture.connections_sampled:
        count = count_text(capture.connections_sampled, "connection")
        remarks.append(f"{count} captured in samples (sFlow): no loss and no cause is certain")
    if capture.unread:
        remarks.append(f"not understood: {unread_text(capture)}")
    if capture.missed_bytes:
        remarks.append(f"{bytes_text(capture.missed_bytes)} acknowledged but missing from the capture")
    return remarks + [f"{count_text(count, noun)} {what}" for count, noun, what in counted if count]


def unread_text(capture: Capture) -> str:
    """Count the frames whose content is not understood, by kind."""
    kinds = [f"{count_text(count, 'frame')} of {kind}" for kind, count in capture.unread_kinds]
    more = capture.unread - sum(count for _, count in capture.unread_kinds)
    return ", ".join([*kinds, f"{count_text(more, 'frame')} of other kinds"] if more else kinds)
