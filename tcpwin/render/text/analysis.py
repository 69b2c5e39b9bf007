"""An analysis as text: the answer first, then the connections worth looking at, then the capture and its quality."""

from __future__ import annotations

from collections.abc import Sequence

from tcpwin.limits import Analysis, Connection, roles_of
from tcpwin.render.text.connections import ConnectionTable, render_table, tabulate_connections
from tcpwin.render.text.summary import render_summary, render_verdict
from tcpwin.render.view.capture import WHOLE, quality_remarks
from tcpwin.render.view.direction import close_text, render_direction
from tcpwin.render.view.loss import render_loss
from tcpwin.render.view.verdict import view_verdict
from tcpwin.units import count_text, name_text, time_text

DETAILED = 3
"""Number of connections shown in full even if nothing is wrong with them."""


def render(analysis: Analysis, *, limit: int = 10) -> str:
    """Render an analysis with its `limit` worst connections."""
    return "\n".join(
        line
        for block in render_blocks(analysis, limit=limit)
        for line in (render_table(block) if isinstance(block, ConnectionTable) else block)
    )


def render_blocks(analysis: Analysis, *, limit: int = 10) -> list[list[str] | ConnectionTable]:
    """Render the same in parts: lines, and the table of several connections."""
    source = ["", *_render_capture(analysis)]
    if analysis.hosts:
        from tcpwin.render.kernel.hosts import render_hosts

        source += render_hosts(analysis)
    worst = analysis.worst(limit)
    if len(analysis) == len(worst) == 1:
        # The summary of a single connection is its verdict, shown once, above the measurements.
        return [[*render_summary(analysis.summary, analysis), "", *_render_connection(worst[0]), *source]]
    lines = render_summary(analysis.summary, analysis)
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
        verdict = render_verdict(view_verdict(connection.verdict))
        lines += ["", *_render_connection(connection, verdict)]
    return [*blocks, [*lines, *source]]


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
        lines.append("         frames are numbered across all files in order of time, as by mergecap")
    for position, remark in enumerate(quality_remarks(capture) or [WHOLE]):
        lines.append(("quality  " if position == 0 else "         ") + remark)
    if command := _pair_command(analysis):
        lines.append(f"         perhaps captures of two points, merged: `{command}` splits and pairs them")
    return lines


def _pair_command(analysis: Analysis) -> str | None:
    """Return the command that a finding suggests for a capture that contains two."""
    settings = (setting for each in analysis.findings if each.remedy for setting in each.remedy.settings)
    return next((name_text(each) for each in settings if each.startswith("tcpwin pair ")), None)


def _render_connection(connection: Connection, verdict: Sequence[str] = ()) -> list[str]:
    lines = [head_line(connection), *(f"    {line}" for line in verdict)]
    client, server = roles_of(connection).values()
    for sender, receiver, direction in ((client, server, connection.a_to_b), (server, client, connection.b_to_a)):
        if direction.data_segments or direction.missed_bytes:
            carried, facts = render_direction(connection, receiver, direction)
            lines += [f"    {sender} → {receiver}  {carried}", *(f"{'':11}{line}" for line in facts)]
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
    """Render number, ends, duration and close of a connection."""
    guess = "" if connection.initiator_known else "   (client guessed)"
    client, server = roles_of(connection).values()
    ends = f"{client} {connection.a} → {server} {connection.b}"
    return f"#{connection.id}  {ends}   {time_text(connection.duration_ns)}, {close_text(connection)}{guess}"
