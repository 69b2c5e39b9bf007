"""An analysis as text: capture quality first, then the connections worth looking at, in plain words."""

from __future__ import annotations

from tcpwin.analysis import Analysis, Capture, Connection, Direction
from tcpwin.report._problems import Problem, judge
from tcpwin.report._units import bytes_text, count_text, rate_text, time_text


def render(analysis: Analysis, *, limit: int = 10) -> str:
    """The report of an analysis with its `limit` worst connections."""
    lines = _render_capture(analysis)
    worst = analysis.worst(limit)
    judged = [(connection, judge(connection)) for connection in worst]
    lines += ["", _headline(analysis, judged)]
    for connection, problems in judged:
        lines += ["", *_render_connection(connection, problems)]
    left = len(analysis) - len(worst)
    if left:
        lines += ["", f"{count_text(left, 'further connection')} not shown: --limit N shows more, --json all."]
    return "\n".join(lines)


def _headline(analysis: Analysis, judged: list[tuple[Connection, list[Problem]]]) -> str:
    if not len(analysis):
        return "No TCP connection in this capture."
    bad = sum(bool(problems) for _, problems in judged)
    if not bad:
        return "No connection was held back by a receive window."
    shown = len(judged)
    scope = f"the {shown} worst of {len(analysis):,}" if shown < len(analysis) else f"{len(analysis):,}"
    return f"Held back by a receive window: {bad} of {scope} {'connection' if len(analysis) == 1 else 'connections'}."


def _render_capture(analysis: Analysis) -> list[str]:
    capture = analysis.capture
    forms = {" ".join((*file.compression, file.format)) for file in capture.files}
    first = (
        f"{count_text(capture.packets, 'packet')}, {count_text(capture.segments, 'TCP segment')}, "
        f"{count_text(len(analysis), 'connection')}, {time_text(capture.duration_ns)}"
    )
    lines = [f"capture  {analysis.name} ({', '.join(sorted(forms))})", f"         {first}"]
    remarks = _quality(capture)
    for position, remark in enumerate(remarks or ["no drops, cuts, duplicates or damage found"]):
        lines.append(("quality  " if position == 0 else "         ") + remark)
    return lines


def _quality(capture: Capture) -> list[str]:
    """What weakens the numbers below, most serious first."""
    remarks = [f"damaged: {warning.message} (at byte {warning.byte_offset})" for warning in capture.warnings]
    if capture.interface_drops:
        remarks.append(f"{count_text(capture.interface_drops, 'packet')} dropped by the capturing interface")
    if capture.unknown_link:
        kinds = ", ".join(f"LINKTYPE {link}" for link, _ in capture.unknown_link_types)
        remarks.append(f"{count_text(capture.unknown_link, 'frame')} of a link type that is not understood ({kinds})")
    if capture.capture_duplicates:
        remarks.append(f"{count_text(capture.capture_duplicates, 'segment')} captured twice, counted once")
    if capture.time_backwards:
        remarks.append(f"time runs backwards at {count_text(capture.time_backwards, 'packet')}")
    if capture.header_cut or capture.options_cut:
        remarks.append(f"TCP headers cut by the snapshot length: {capture.header_cut + capture.options_cut:,}")
    if capture.datagrams_incomplete:
        remarks.append(f"{count_text(capture.datagrams_incomplete, 'fragmented datagram')} incomplete")
    if capture.malformed:
        remarks.append(f"{count_text(capture.malformed, 'frame')} with malformed headers")
    if capture.super_segments:
        remarks.append(
            f"{count_text(capture.super_segments, 'segment')} larger than the MSS: captured on a host with offload"
        )
    return remarks


def _render_connection(connection: Connection, problems: list[Problem]) -> list[str]:
    arrow = "→" if connection.initiator_known else "→ (direction guessed)"
    lines = [
        f"#{connection.id}  {connection.a} {arrow} {connection.b}   "
        f"{time_text(connection.duration_ns)}, {_close_text(connection)}"
    ]
    lines += [f"    {_problem_text(connection, problem)}" for problem in problems]
    for sender, receiver, direction in (("a", "b", connection.a_to_b), ("b", "a", connection.b_to_a)):
        if direction.data_segments or direction.missed_bytes:
            lines += [f"    {line}" for line in _render_direction(sender, receiver, direction)]
    return lines


def _close_text(connection: Connection) -> str:
    close = connection.close.replace("_", " ")
    by = connection.reset_by if connection.close.startswith("reset") else connection.closed_first
    return f"{close} by {by}" if by and connection.close in ("reset", "half_closed") else close


def _problem_text(connection: Connection, problem: Problem) -> str:
    direction = connection.a_to_b if problem.sender == "a" else connection.b_to_a
    sender, receiver, share = problem.sender, problem.receiver, f"{problem.share:.0%} of the time"
    if problem.kind in ("zero_window", "dead_zero_window"):
        times = count_text(direction.zero_window_episode_count, "time")
        text = (
            f"{receiver} closed its receive window {times}, {time_text(direction.zero_window_ns)} in all ({share} with "
            f"the window closed or full), longest {time_text(direction.zero_window_longest_ns)}"
        )
        if problem.kind == "dead_zero_window":
            return f"{text}; the last time it never opened again"
        return f"{text}: the application on {receiver} reads too slowly"
    window = direction.receive_window_max_bytes
    text = f"{sender} was held back by {receiver}'s receive window of at most {bytes_text(window)} for {share}"
    round_trip_ns = connection.handshake_rtt_ns
    if window and round_trip_ns:
        text += f"; over {time_text(round_trip_ns)} that allows {rate_text(window * 8e9 / round_trip_ns)}"
    if problem.kind == "scaling_disabled":
        whose = {"a": "a's SYN", "b": "b's SYN/ACK", "both": "either SYN"}[direction.window_scale.disabled_by or "both"]
        text += f". No window scaling: the option is missing from {whose}, so no window can exceed 65,535 bytes"
    return text


def _render_direction(sender: str, receiver: str, direction: Direction) -> list[str]:
    lines = [
        f"{sender} → {receiver}  {bytes_text(direction.acked_bytes)} acknowledged at {rate_text(direction.goodput_bps)}, "
        f"{count_text(direction.retransmissions, 'retransmission')}"
    ]
    scale = direction.window_scale
    if direction.receive_window_max_bytes is None:
        lines.append(f"       window of {receiver}: scale not known, {scale}; " + "; ".join(scale.evidence))
    else:
        lines.append(
            f"       window of {receiver}: {bytes_text(direction.receive_window_min_bytes)} to "
            f"{bytes_text(direction.receive_window_max_bytes)}, mean {bytes_text(direction.receive_window_mean_bytes)}, "
            f"{scale}"
        )
    if direction.flight_max_bytes is None:
        lines.append("       in flight: unknown, the acknowledgments were not captured")
    else:
        lines.append(
            f"       in flight: mean {bytes_text(direction.flight_mean_bytes)}, "
            f"at most {bytes_text(direction.flight_max_bytes)}"
        )
    if direction.missed_bytes:
        lines.append(f"       the capture lacks {bytes_text(direction.missed_bytes)} that were acknowledged")
    return lines
