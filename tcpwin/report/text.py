"""An analysis as text: capture quality first, then the connections worth looking at, in plain words."""

from __future__ import annotations

from tcpwin.analysis import Analysis, Capture, Connection, Direction
from tcpwin.limits import summarize
from tcpwin.report.costs import Cost, weigh
from tcpwin.report.loss import render_loss
from tcpwin.report.problems import Problem, find_held_back, judge
from tcpwin.report.summary import render_summary, render_verdict
from tcpwin.report.timing import render_sender_flight, render_timing
from tcpwin.units import bytes_text, count_text, name_text, rate_text, share_text, time_text

WHOLE = "no drops, gaps, duplicates or damage found"
DETAILED = 3
"""Connections shown in full even when nothing is wrong with them."""


def render(analysis: Analysis, *, limit: int = 10) -> str:
    """The report of an analysis with its `limit` worst connections."""
    lines = _render_capture(analysis)
    if analysis.hosts:
        from tcpwin.report.hosts import render_hosts

        lines += render_hosts(analysis)
    if len(analysis):
        lines += ["", *render_summary(summarize(analysis))]
    worst = analysis.worst(limit)
    judged = [(connection, judge(connection)) for connection in worst]
    lines += ["", _headline(analysis, judged)]
    for position, (connection, problems) in enumerate(judged):
        costs = weigh(connection)
        is_brief = not problems and not costs and position >= DETAILED
        lines += ["", *_render_connection(connection, problems, costs, is_brief=is_brief)]
    left = len(analysis) - len(worst)
    if left:
        lines += ["", f"{count_text(left, 'more connection')} not shown: --limit N shows more, --json all."]
    return "\n".join(lines)


def _headline(analysis: Analysis, judged: list[tuple[Connection, list[Problem]]]) -> str:
    if not len(analysis):
        return "No TCP connection in this capture."
    bad = len(find_held_back(analysis))
    if not bad:
        unknown = sum(_has_unknown_window(connection) for connection, _ in judged)
        hedge = f" The windows of {count_text(unknown, 'connection')} below are not known in bytes." if unknown else ""
        return f"No connection was seen to be held back by a receive window.{hedge}"
    return f"Held back by a receive window: {bad:,} of {count_text(len(analysis), 'connection')}."


def _has_unknown_window(connection: Connection) -> bool:
    directions = (connection.a_to_b, connection.b_to_a)
    return any(d.data_segments and d.receive_window_max_bytes is None for d in directions)


def _render_capture(analysis: Analysis) -> list[str]:
    capture = analysis.capture
    forms = {" ".join((*file.compression, file.format)) for file in capture.files}
    first = (
        f"{count_text(capture.packets, 'packet')}, {count_text(capture.segments, 'TCP segment')}, "
        f"{count_text(len(analysis), 'connection')}, {time_text(capture.duration_ns)}"
    )
    lines = [f"capture  {name_text(analysis.name)} ({', '.join(sorted(forms))})", f"         {first}"]
    for position, remark in enumerate(quality_remarks(capture) or [WHOLE]):
        lines.append(("quality  " if position == 0 else "         ") + remark)
    return lines


def quality_remarks(capture: Capture) -> list[str]:
    """What weakens a capture's numbers, most serious first; nothing of a whole one."""
    remarks = [f"damaged: {name_text(warning.message)} (at byte {warning.byte_offset})" for warning in capture.warnings]
    kinds = ", ".join(f"LINKTYPE {link}" for link, _ in capture.unknown_link_types)
    counted = [
        (capture.interface_drops or 0, "packet", "dropped by the capturing interface"),
        (capture.connections_one_way, "connection", "of which only one side was captured"),
        (capture.connections_without_syn, "connection", "without its SYN"),
        (capture.unknown_link, "frame", f"of a link type that is not understood ({kinds})"),
        (capture.capture_duplicates, "segment", "captured twice, counted once"),
        (capture.time_backwards, "packet", "with a time before that of the packet before"),
        (capture.header_cut + capture.options_cut, "TCP header", "cut by the snapshot length"),
        (capture.datagrams_incomplete, "fragmented datagram", "incomplete"),
        (capture.malformed, "frame", "with malformed headers"),
        (capture.super_segments, "segment", "larger than the MSS: captured on a host with offload"),
    ]
    if capture.packets and capture.first_time_ns is None:
        remarks.append("no packet has a time: durations, rates and round trips mean nothing")
    if capture.connections_sampled:
        count = count_text(capture.connections_sampled, "connection")
        remarks.append(f"{count} captured in samples (sFlow): none of its losses or causes is sure")
    if capture.missed_bytes:
        remarks.append(f"{bytes_text(capture.missed_bytes)} were acknowledged that the capture does not hold")
    return remarks + [f"{count_text(count, noun)} {what}" for count, noun, what in counted if count]


def _render_connection(
    connection: Connection, problems: list[Problem], costs: list[Cost], *, is_brief: bool
) -> list[str]:
    lines = [head_line(connection), *(f"    {line}" for line in render_verdict(connection))]
    lines += [f"    ! {problem_text(connection, problem)}" for problem in problems]
    lines += [f"    ! {cost.text}" for cost in costs]
    for sender, receiver, direction in (("a", "b", connection.a_to_b), ("b", "a", connection.b_to_a)):
        if direction.data_segments or direction.missed_bytes:
            costly = {cost.kind for cost in costs if cost.sender == sender}
            told = render_direction(connection, sender, receiver, direction, costly)
            lines += [f"    {line}" for line in (told[:1] if is_brief else told)]
        elif direction.retransmissions:
            told = [f"{sender} → {receiver}  no data, {count_text(direction.retransmissions, 'retransmission')}"]
            told += [f"       {line}" for line in render_loss(direction)]
            lines += [f"    {line}" for line in (told[:1] if is_brief else told)]
    if connection.socket_samples:
        from tcpwin.report.hosts import render_sockets

        lines += [f"    {line}" for line in render_sockets(connection)]
    return lines


def head_line(connection: Connection) -> str:
    """Number, ends, duration and close of a connection."""
    guess = "" if connection.initiator_known else "   (who initiated is guessed)"
    head = f"#{connection.id}  {connection.a} → {connection.b}   {time_text(connection.duration_ns)}, "
    return head + close_text(connection) + guess


def close_text(connection: Connection) -> str:
    """How a connection ended, and by whom."""
    close = connection.close.replace("_", " ")
    by = connection.reset_by if connection.close == "reset" else connection.closed_first
    return f"{close} by {by}" if by and connection.close in ("reset", "half_closed") else close


def problem_text(connection: Connection, problem: Problem) -> str:
    """A problem in a sentence or two."""
    sender, receiver = problem.sender, problem.receiver
    direction = connection.a_to_b if sender == "a" else connection.b_to_a
    # What the window held back while data was on its way is not seen near the receiver.
    at_least = "at least " if direction.captured_near_receiver and problem.share < 0.9 else ""
    share = f"{at_least}{share_text(problem.share)} of its life"
    closed = (
        f"closed it {count_text(direction.zero_window_episode_count, 'time')} for "
        f"{time_text(direction.zero_window_ns)} in all, {time_text(direction.zero_window_longest_ns)} at the longest"
    )
    if problem.kind in ("zero_window", "dead_zero_window"):
        text = f"{receiver}'s receive window held {sender} back for {share}: {receiver} {closed}"
        if problem.kind == "dead_zero_window":
            return f"{text}; the last time it never opened again"
        listed_ns = sum(e.duration_ns for e in direction.zero_window_episodes)
        unannounced_ns = sum(e.duration_ns for e in direction.zero_window_episodes if e.ended_by == "probe_answer")
        if unannounced_ns > listed_ns / 2:
            return f"{text}. Only a probe's answer showed it open again: the window update was lost or never sent"
        return f"{text}. The application on {receiver} reads too slowly"
    window = direction.receive_window_max_bytes
    text = f"{receiver}'s receive window, at most {bytes_text(window)}, held {sender} back for {share}"
    if direction.zero_window_episode_count:
        text += f"; {receiver} {closed}"
    round_trip_ns = connection.path_rtt_ns
    if window and round_trip_ns:
        text += f". Over {time_text(round_trip_ns)} it allows {rate_text(window * 8e9 / round_trip_ns)}"
    if problem.kind == "scaling_disabled":
        whose = {"a": "The SYN of a has no", "b": "The SYN of b has no", "both": "Neither SYN has a"}
        scale = whose[direction.window_scale.disabled_by or "both"]
        text += f". {scale} window scale option: 65,535 bytes at most"
    return text


def render_direction(
    connection: Connection, sender: str, receiver: str, direction: Direction, costly: set[str]
) -> list[str]:
    """What a direction carried, a line; its window, flight, losses and times below it, indented by seven."""
    rate = f" at {rate_text(direction.goodput_bps)}" if direction.goodput_bps is not None else ""
    resent = count_text(direction.retransmissions, "retransmission")
    got = f"{bytes_text(direction.acked_bytes)} acknowledged{rate}"
    if direction.flight_max_bytes is None and direction.data_segments:
        got = f"{bytes_text(direction.unique_bytes)} sent, acknowledgments not captured"
    lines = [f"{sender} → {receiver}  {got}, {resent}"]
    scale = direction.window_scale
    least, most = direction.receive_window_min_bytes, direction.receive_window_max_bytes
    if most is None:
        evidence = f": {'; '.join(scale.evidence)}" if scale.evidence else ""
        lines.append(f"       window of {receiver}: not known in bytes, {scale}{evidence}")
    elif bytes_text(least) == bytes_text(most):
        lines.append(f"       window of {receiver}: {bytes_text(most)} throughout, {scale}")
    else:
        mean = bytes_text(direction.receive_window_mean_bytes)
        lines.append(f"       window of {receiver}: {bytes_text(least)} to {bytes_text(most)}, mean {mean}, {scale}")
    if direction.flight_max_bytes is None:
        lines.append("       in flight: unknown, one side of the connection was not captured")
    else:
        where = ", as seen near the receiver: more at the sender" if direction.captured_near_receiver else ""
        mean, most_text = bytes_text(direction.flight_mean_bytes), bytes_text(direction.flight_max_bytes)
        lines.append(f"       in flight: mean {mean}, at most {most_text}{where}")
        lines += [f"       {line}" for line in render_sender_flight(direction)]
    told = render_loss(direction, has_told_recovery="loss" in costly)
    told += render_timing(connection, direction, has_told_restarts="idle_restart" in costly)
    lines += [f"       {line}" for line in told]
    if direction.missed_bytes:
        lines.append(f"       the capture lacks {bytes_text(direction.missed_bytes)} that were acknowledged")
    return lines
