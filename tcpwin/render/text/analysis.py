"""An analysis as text: capture quality first, then the connections worth looking at, in plain words."""

from __future__ import annotations

from collections.abc import Sequence

from tcpwin.analysis import Capture, Direction
from tcpwin.limits import Analysis, Connection, role_of, roles_of
from tcpwin.render.text.connections import ConnectionTable, render_table, tabulate_connections
from tcpwin.render.text.loss import render_loss
from tcpwin.render.text.summary import render_answer, render_summary, render_verdict
from tcpwin.render.text.timing import render_sender_flight, render_timing
from tcpwin.units import bytes_text, count_text, name_text, rate_text, time_text

WHOLE = "no drops, gaps, duplicates or damage found"
LEAST_MEAN_BYTES = 1
INITIAL_SEGMENTS, INITIAL_BYTES = 10, 14_600
"""The initial congestion window (RFC 6928 §2): what fits it has a delay, and no rate worth the name."""

SILENT_SHARE = 0.05
"""Share of the life after the last ACK of new data, from which on it is told: it is in the times, not in the rate."""

DETAILED = 3
"""Connections shown in full even when nothing is wrong with them."""


def render(analysis: Analysis, *, limit: int = 10) -> str:
    """The report of an analysis with its `limit` worst connections."""
    return "\n".join(
        line
        for block in render_blocks(analysis, limit=limit)
        for line in (render_table(block) if isinstance(block, ConnectionTable) else block)
    )


def render_blocks(analysis: Analysis, *, limit: int = 10) -> list[list[str] | ConnectionTable]:
    """The same in parts: lines, and the table of several connections."""
    lines = _render_capture(analysis)
    if analysis.hosts:
        from tcpwin.render.kernel.hosts import render_hosts

        lines += render_hosts(analysis)
    worst = analysis.worst(limit)
    if len(analysis) == len(worst) == 1:
        # The summary of one connection is its verdict: said once, above what was measured.
        lines += ["", *render_answer(analysis.summary, worst[0]), "", *_render_connection(worst[0])]
        return [lines]
    lines += ["", *render_summary(analysis.summary, analysis)]
    table = tabulate_connections(analysis, [each.id for each in worst])
    blocks: list[list[str] | ConnectionTable] = [[*lines, ""], table] if worst else [lines]
    left = len(analysis) - len(worst)
    lines = [f"{count_text(left, 'more connection')} not shown: --limit N shows more, --json all."] if left else []
    if left and not worst:
        lines.insert(0, "")
    problems = set(analysis.problems)
    for position, connection in enumerate(worst):
        if connection.id not in problems and position >= DETAILED:
            continue
        verdict = render_verdict(connection.verdict)
        lines += ["", *_render_connection(connection, verdict)]
    return [*blocks, lines]


def _render_capture(analysis: Analysis) -> list[str]:
    capture = analysis.capture
    forms = {" ".join((*file.compression, file.format)) for file in capture.files}
    first = (
        f"{count_text(capture.packets, 'packet')}, {count_text(capture.segments, 'TCP segment')}, "
        f"{count_text(len(analysis), 'connection')}, {time_text(capture.duration_ns)}"
    )
    lines = [f"capture  {name_text(analysis.name)} ({', '.join(sorted(forms))})", f"         {first}"]
    if analysis.selection is not None:
        left = capture.packets - capture.packets_left_out
        lines.append(f"         selected: {left:,} of them: {name_text(str(analysis.selection))}")
    if len(capture.files) > 1:
        lines.append("         frames are numbered through all files in order of time, as mergecap does")
    for position, remark in enumerate(quality_remarks(capture) or [WHOLE]):
        lines.append(("quality  " if position == 0 else "         ") + remark)
    if command := _pair_command(analysis):
        lines.append(f"         perhaps captures of two points, merged: `{command}` splits and pairs them")
    return lines


def _pair_command(analysis: Analysis) -> str | None:
    """The command that a finding names for a capture that holds two."""
    settings = (setting for each in analysis.findings if each.remedy for setting in each.remedy.settings)
    return next((name_text(each) for each in settings if each.startswith("tcpwin pair ")), None)


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
        remarks.append(f"{count} captured in samples (sFlow): no loss and no cause is certain")
    if capture.unread:
        remarks.append(f"not understood: {unread_text(capture)}")
    if capture.missed_bytes:
        remarks.append(f"{bytes_text(capture.missed_bytes)} were acknowledged that the capture does not hold")
    return remarks + [f"{count_text(count, noun)} {what}" for count, noun, what in counted if count]


def unread_text(capture: Capture) -> str:
    """The frames whose content is not understood, by kind."""
    kinds = [f"{count_text(count, 'frame')} of {kind}" for kind, count in capture.unread_kinds]
    more = capture.unread - sum(count for _, count in capture.unread_kinds)
    return ", ".join([*kinds, f"{count_text(more, 'frame')} of other kinds"] if more else kinds)


def _render_connection(connection: Connection, verdict: Sequence[str] = ()) -> list[str]:
    lines = [head_line(connection), *(f"    {line}" for line in verdict)]
    client, server = roles_of(connection).values()
    for sender, receiver, direction in ((client, server, connection.a_to_b), (server, client, connection.b_to_a)):
        if direction.data_segments or direction.missed_bytes:
            lines += [f"    {line}" for line in render_direction(connection, sender, receiver, direction)]
        elif direction.retransmissions:
            lines.append(
                f"    {sender} → {receiver}  no data, {count_text(direction.retransmissions, 'retransmission')}"
            )
            lines += [f"           {line}" for line in render_loss(connection, direction)]
    if connection.socket_samples:
        from tcpwin.render.kernel.hosts import render_sockets

        lines += [f"    {line}" for line in render_sockets(connection)]
    return lines


def head_line(connection: Connection) -> str:
    """Number, ends, duration and close of a connection."""
    guess = "" if connection.initiator_known else "   (who opened it is guessed)"
    client, server = roles_of(connection).values()
    ends = f"{client} {connection.a} → {server} {connection.b}"
    return f"#{connection.id}  {ends}   {time_text(connection.duration_ns)}, {close_text(connection)}{guess}"


def close_text(connection: Connection) -> str:
    """How a connection ended, and by whom."""
    close = connection.close.replace("_", " ")
    by = connection.reset_by if connection.close == "reset" else connection.closed_first
    return f"{close} by the {role_of(connection, by)}" if by and connection.close in ("reset", "half_closed") else close


def _rate_words(connection: Connection, direction: Direction) -> str:
    """A goodput with the time that it is of, where that is not the connection's."""
    goodput_bps = direction.goodput_bps
    if goodput_bps is None:
        return ""
    if direction.data_segments <= INITIAL_SEGMENTS and direction.acked_bytes <= INITIAL_BYTES:
        return f", {count_text(direction.data_segments, 'segment')}"
    rate = rate_text(goodput_bps)
    took = time_text(direction.acked_bytes * 8e9 / goodput_bps) if goodput_bps and direction.acked_bytes else ""
    if not took or took == time_text(connection.duration_ns):
        return f" at {rate}"
    carried_ns = direction.acked_bytes * 8e9 / goodput_bps
    idle_ns = connection.end_ns - (direction.first_data_ns or connection.start_ns) - carried_ns
    silent = f", nothing in the last {time_text(idle_ns)}" if idle_ns >= SILENT_SHARE * connection.duration_ns else ""
    return f" in {took} ({rate}){silent}"


def render_direction(connection: Connection, sender: str, receiver: str, direction: Direction) -> list[str]:
    """What a direction carried, a line; its window, flight, losses and times below it, indented by seven."""
    resent = count_text(direction.retransmissions, "retransmission")
    got = f"{bytes_text(direction.acked_bytes)} acknowledged{_rate_words(connection, direction)}"
    if direction.flight_max_bytes is None and direction.data_segments:
        got = f"{bytes_text(direction.unique_bytes)} sent, acknowledgments not captured"
    lines = [f"{sender} → {receiver}  {got}, {resent}"]
    scale = direction.window_scale
    least, most = direction.receive_window_min_bytes, direction.receive_window_max_bytes
    if most is None:
        evidence = f" ({'; '.join(scale.evidence)})" if scale.evidence else ""
        lines.append(f"       window of the {receiver}: not known in bytes, {scale}{evidence}")
    elif bytes_text(least) == bytes_text(most):
        lines.append(f"       window of the {receiver}: {bytes_text(most)} throughout, {scale}")
    else:
        mean = bytes_text(direction.receive_window_mean_bytes)
        lines.append(
            f"       window of the {receiver}: {bytes_text(least)} to {bytes_text(most)}, mean {mean}, {scale}"
        )
    if direction.flight_max_bytes is None:
        lines.append("       in flight: unknown, one side of the connection was not captured")
    else:
        where = ", as seen near the receiver: more at the sender" if direction.captured_near_receiver else ""
        mean, most_text = bytes_text(direction.flight_mean_bytes), bytes_text(direction.flight_max_bytes)
        # Of a few bytes in a long time the mean says nothing.
        mean = f"mean {mean}, " if (direction.flight_mean_bytes or 0) >= LEAST_MEAN_BYTES else ""
        lines.append(f"       in flight: {mean}at most {most_text}{where}")
        lines += [f"       {line}" for line in render_sender_flight(direction)]
    details = [*render_loss(connection, direction), *render_timing(connection, direction)]
    lines += [f"       {line}" for line in details]
    if direction.missed_bytes:
        lines.append(f"       the capture lacks {bytes_text(direction.missed_bytes)} that were acknowledged")
    unacked_bytes = direction.unique_bytes - direction.acked_bytes
    if connection.close == "reset" and unacked_bytes > 0 and direction.flight_max_bytes is not None:
        lines.append(f"       {bytes_text(unacked_bytes)} sent, but not acknowledged before the reset")
    return lines
