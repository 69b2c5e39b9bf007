"""One connection in full, as text: handshake, options, both directions, retransmissions, zero-window episodes."""

from __future__ import annotations

from collections.abc import Sequence

from tcpwin.analysis import DIRECTIONS, Direction, DirectionName, Event, Percentiles
from tcpwin.limits import Connection, algorithms_of, roles_of, way_of
from tcpwin.render.text.analysis import head_line
from tcpwin.render.text.summary import render_budgets, render_stalls, render_verdict
from tcpwin.render.view.direction import rate_of
from tcpwin.render.view.loss import render_loss
from tcpwin.render.view.resent import render_resent
from tcpwin.render.view.timing import (
    render_acks,
    render_algorithm,
    render_restart_frames,
    render_round_trips,
    render_sender_flight,
    render_start,
    render_timing,
)
from tcpwin.render.view.verdict import view_verdict
from tcpwin.units import bytes_text, count_text, rate_text, time_text

EPISODES_SHOWN = 20


def render_connection(connection: Connection) -> str:
    """Render a connection in full. Reads the source again for percentiles and events."""
    lines = [head_line(connection), *_indent(render_verdict(view_verdict(connection.verdict)))]
    events = connection.events
    lines += ["", *_indent(_render_handshake(connection)), "", *_indent(_render_options(connection))]
    lines += _indent([*render_budgets(connection), *render_stalls(connection)])
    roles = roles_of(connection)
    for name in DIRECTIONS:
        direction = connection.a_to_b if name == "a_to_b" else connection.b_to_a
        receiver = roles[name[-1]]
        lines += ["", f"  {way_of(connection, name)}"]
        resent = [event for event in events if event.direction == name[0]]
        lines += _indent(_render_direction(connection, name, receiver, direction, resent), "    ")
    if connection.socket_samples:
        from tcpwin.render.kernel.hosts import render_joined, render_sockets

        lines += _indent(_set_apart(render_sockets(connection)) + _set_apart(render_joined(connection)))
    return "\n".join(lines)


def _indent(lines: Sequence[str], by: str = "  ") -> list[str]:
    return [by + line if line else line for line in lines]


def _render_handshake(connection: Connection) -> list[str]:
    fields = connection.fields
    syn_ns, answer_ns, established_ns = (fields[name] for name in ("syn_ns", "syn_ack_ns", "established_ns"))
    lines = []
    if None not in (syn_ns, answer_ns, established_ns):
        lines.append(
            f"handshake   {time_text(established_ns - syn_ns)}: SYN/ACK after {time_text(answer_ns - syn_ns)}, "
            f"ACK {time_text(established_ns - answer_ns)} later"
        )
    else:
        seen = [
            name for name, ns in (("SYN", syn_ns), ("SYN/ACK", answer_ns), ("ACK", established_ns)) if ns is not None
        ]
        lines.append(f"handshake   captured: {', '.join(seen) or 'nothing'}")
    lines.append(f"path        {time_text(connection.path_rtt_ns)} round trip at least")
    return lines


def _render_options(connection: Connection) -> list[str]:
    sides = (connection.a_to_b, connection.b_to_a)
    client, server = roles_of(connection).values()

    def row(name: str, values: Sequence[object]) -> str:
        shown = ["no SYN" if not side.syn_seen else str(value) for side, value in zip(sides, values, strict=True)]
        return f"{name:14}{shown[0]:>10}{shown[1]:>10}"

    def has(values: Sequence[bool]) -> list[str]:
        return ["yes" if value else "no" for value in values]

    return [
        f"{'SYN options':14}{client:>10}{server:>10}",
        row("MSS", [side.syn_mss if side.syn_mss is not None else "none" for side in sides]),
        row("window scale", [side.syn_window_scale if side.syn_window_scale is not None else "none" for side in sides]),
        row("SACK", has([side.syn_sack_permitted for side in sides])),
        row("timestamps", has([side.syn_timestamps for side in sides])),
    ]


def _render_direction(
    connection: Connection, name: DirectionName, receiver: str, direction: Direction, events: Sequence[Event]
) -> list[str]:
    rate_bps = rate_of(direction)
    rates = "" if rate_bps is None else f", {rate_text(rate_bps)}"
    lines = [
        f"{count_text(direction.segments, 'segment')}, {direction.data_segments:,} with data; "
        f"{bytes_text(direction.unique_bytes)} sent, {bytes_text(direction.acked_bytes)} acknowledged{rates}",
        f"{count_text(direction.retransmissions, 'retransmission')} ({bytes_text(direction.resent_bytes)}), "
        f"{direction.out_of_order:,} out of order, {count_text(direction.duplicate_acks, 'duplicate ACK')}, "
        f"{bytes_text(direction.missed_bytes)} missing from the capture",
    ]
    table = _set_apart(render_resent(events, start_ns=connection.start_ns))
    if not direction.data_segments:
        return [lines[0], *render_loss(connection, direction), *table]
    lines += render_loss(connection, direction)
    lines += render_acks(receiver, direction)
    lines += render_start(direction)
    lines += render_algorithm(algorithms_of(connection)[name])
    lines += [*render_timing(connection, direction), *render_restart_frames(events)]
    lines += _set_apart(render_round_trips(receiver, direction, connection.round_trips(direction=name)))
    lines += table
    lines += _set_apart(_render_distributions(connection, name, receiver, direction))
    lines += _render_window(connection, receiver, direction)
    return lines


def _set_apart(block: list[str]) -> list[str]:
    return ["", *block] if block else []


def _render_window(connection: Connection, receiver: str, direction: Direction) -> list[str]:
    lines = [*render_sender_flight(direction), f"scale of the {receiver}'s windows: {direction.window_scale}"]
    lines += [f"  {reason}" for reason in direction.window_scale.evidence]
    lines += [
        f"held back by the window for {time_text(direction.window_limited_ns)}, closed for "
        f"{time_text(direction.zero_window_ns)}; full to the byte {count_text(direction.window_full, 'time')}, to less "
        f"than a segment {count_text(direction.window_near_full, 'time')}, "
        f"overrun {count_text(direction.window_overrun, 'time')}",
        f"{count_text(direction.window_updates, 'window update')}, {direction.window_shrinks:,} shrunk, "
        f"{direction.sub_mss_windows:,} smaller than a segment",
    ]
    if direction.zero_window_episodes:
        lines += ["", *_render_episodes(connection, direction)]
    return lines


def _render_distributions(
    connection: Connection, name: DirectionName, receiver: str, direction: Direction
) -> list[str]:
    heads = ("least", "5 %", "25 %", "50 %", "75 %", "95 %", "99 %", "most", "mean")
    lines = [f"{'share of time':16}" + "".join(f"{head:>10}" for head in heads)]
    window, flight = (connection.percentiles(kind, direction=name) for kind in ("receive_window", "flight"))
    least, most = direction.receive_window_min_bytes, direction.receive_window_max_bytes
    lines.append(_distribution(f"{receiver}'s window", least, window, most, direction.receive_window_mean_bytes))
    lines.append(_distribution("in flight", 0, flight, direction.flight_max_bytes, direction.flight_mean_bytes))
    return lines


def _distribution(name: str, least: int | None, shares: Percentiles, most: int | None, mean: float | None) -> str:
    values = (least, shares.p5, shares.p25, shares.p50, shares.p75, shares.p95, shares.p99, most, mean)
    if most is None:
        return f"{name:16}  not known"
    return f"{name:16}" + "".join(f"{bytes_text(value):>10}" for value in values)


def _render_episodes(connection: Connection, direction: Direction) -> list[str]:
    lines = [f"{'window closed at':>16}{'for':>10}{'probes':>8}{'spaced':>18}   ended by"]
    for episode in direction.zero_window_episodes[:EPISODES_SHOWN]:
        spaced = ""
        if episode.probes:
            spaced = f"{time_text(episode.first_probe_after_ns)} … {time_text(episode.last_probe_interval_ns)}"
        ended = episode.ended_by.replace("_", " ")
        frames = (
            f"frames {episode.start_frame} to {episode.end_frame}"
            if episode.end_frame
            else f"frame {episode.start_frame}"
        )
        at = time_text(episode.start_ns - connection.start_ns)
        lines.append(f"{at:>16}{time_text(episode.duration_ns):>10}{episode.probes:>8}{spaced:>18}   {ended}, {frames}")
    left = direction.zero_window_episode_count - min(len(direction.zero_window_episodes), EPISODES_SHOWN)
    return [*lines, f"{left:,} more"] if left else lines
