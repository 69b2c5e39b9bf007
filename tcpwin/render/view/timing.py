"""Round trips, pauses, messages and ACKs: lines of a direction."""

from __future__ import annotations

from collections.abc import Sequence

from tcpwin.analysis import FEWEST_FOR_P95, Direction, Event, RoundTrips
from tcpwin.limits import Algorithm, Connection
from tcpwin.units import bytes_text, count_text, time_text

MESSAGES_FOR_SHARES = 5
"""Minimum number of messages for percentiles: with fewer, they only repeat the maximum."""

FRAMES_SHOWN = 10

OWN_PACE = 0.1
"""Minimum share of the lifetime without data to send for which messages are shown."""

SAMPLES_FOR_MEAN = 5
"""Minimum number of round trips for a smoothed one: with fewer, it is hardly more than the first."""

SEEN_FROM = {"receiver": "captured near the receiver", "between": "captured in between"}


def render_timing(connection: Connection, direction: Direction) -> list[str]:
    """Render round trips, pauses and their cost, messages, answers, waits for delayed ACKs. Omits anything absent."""
    lines = _render_round_trip(connection, direction)
    if direction.idle_gaps:
        gaps = f"{direction.idle_gaps:,} longer than the RTO with nothing in flight"
        # The time of pauses not charged to the application by the budget passed at a closed window.
        is_closed = direction.zero_window_ns and direction.idle_ns > direction.budget_application_ns
        closed = ", including time at zero window" if is_closed else ""
        lines.append(f"pauses: {gaps}, {time_text(direction.idle_ns)} in all{closed}")
    if direction.idle_restarts:
        trips = count_text(direction.idle_restart_round_trips, "round trip")
        cut = "the congestion window was cut" if direction.view == "sender" else "the congestion window seems cut"
        cost = f"{trips} lost, {time_text(direction.idle_restart_cost_ns)}"
        lines.append(f"idle restarts: {cut} after {count_text(direction.idle_restarts, 'pause')}: {cost}")
    # If something else stops the sender, that ends its bursts, not the application.
    is_own_pace = direction.budget_application_ns >= OWN_PACE * connection.duration_ns
    if direction.messages >= MESSAGES_FOR_SHARES and is_own_pace:
        p50, p95, p99 = (
            time_text(ns)
            for ns in (direction.message_delay_p50_ns, direction.message_delay_p95_ns, direction.message_delay_p99_ns)
        )
        is_timed = direction.message_delay_p50_ns is not None
        delays = f"median {p50}, p95 {p95}, p99 {p99}" if is_timed else "unknown"
        lines.append(f"messages: {direction.messages:,}, first byte sent to last byte arrived: {delays}")
    if direction.turns:
        lines.append(_answers_text(connection, direction))
    if direction.nagle_delays:
        small = count_text(direction.nagle_delays, "small segment")
        lines.append(f"Nagle: {small} waited {time_text(direction.nagle_delay_ns)} in all for delayed ACKs")
    return lines


def render_restart_frames(events: Sequence[Event]) -> list[str]:
    """Render the segments that resumed an interrupted burst an ACK later."""
    frames = [event.frame for event in events if "idle_restart" in event.names]
    if not frames:
        return []
    shown = ", ".join(str(frame) for frame in frames[:FRAMES_SHOWN])
    more = f" and {len(frames) - FRAMES_SHOWN:,} more" if len(frames) > FRAMES_SHOWN else ""
    return [f"idle restarts: bursts resume at frame {shown}{more}"]


def _render_round_trip(connection: Connection, direction: Direction) -> list[str]:
    """Render the round trip. Away from the sender, its round trip is the sum of both sides of the capture point."""
    if not direction.rtt_samples:
        return []
    if direction.view in SEEN_FROM:
        least_ns, smoothed_ns = connection.path_rtt_ns, direction.sender_rtt_smoothed_ns
        where = SEEN_FROM[direction.view]
    else:
        least_ns, smoothed_ns = direction.rtt_min_ns, direction.rtt_smoothed_ns
        where = "captured at the sender" if direction.view == "sender" else "capture point unknown"
    if connection.a.address == connection.b.address:
        where = "captured on the host of both ends"
    least = f"least {time_text(least_ns)}, " if least_ns is not None else ""
    timeout = f", RTO {time_text(direction.rto_ns)}" if direction.rto_ns is not None else ""
    if least and direction.rtt_samples < SAMPLES_FOR_MEAN:
        return [f"round trip: {least}{count_text(direction.rtt_samples, 'sample')}; {where}"]
    return [f"round trip: {least}smoothed {time_text(smoothed_ns)}{timeout}; {where}"]


def _answers_text(connection: Connection, direction: Direction) -> str:
    """Return the times of a direction's answers: the side's own, where the turns are known, else as captured."""
    if connection.turns_state != "known" or direction.work_p50_ns is None:
        return f"answers: {direction.turns:,}, first byte after {_first_byte_text(direction)}"
    p50, p95, longest = (time_text(ns) for ns in (direction.work_p50_ns, direction.work_p95_ns, direction.work_max_ns))
    spread = ""
    if direction.turns > 1:
        p95 = f", p95 {p95}" if direction.turns >= FEWEST_FOR_P95 else ""
        spread = f" (median){p95}, longest {longest}"
    if direction is connection.a_to_b:
        return f"requests: {direction.turns:,} after an answer, {p50} later{spread}"
    each = " each" if direction.turns > 1 else ""
    round_trip = "" if connection.path_rtt_ns is None else f"; round trip {time_text(connection.path_rtt_ns)}{each}"
    return f"answers: {direction.turns:,}, after {p50} of work{spread}{round_trip}"


def _first_byte_text(direction: Direction) -> str:
    p50, p95, p99 = (
        time_text(ns) for ns in (direction.first_byte_p50_ns, direction.first_byte_p95_ns, direction.first_byte_p99_ns)
    )
    if direction.turns == 1:
        return p50
    if direction.turns < FEWEST_FOR_P95:
        return f"{p50} (median), {p99} at most"
    return f"{p50} (median), p95 {p95}, p99 {p99}"


def render_sender_flight(direction: Direction) -> list[str]:
    """Render the bytes in flight as the sender saw them, if they differ from the capture point's."""
    most, seen = bytes_text(direction.sender_flight_max_bytes), bytes_text(direction.flight_max_bytes)
    if direction.sender_flight_max_bytes is None or direction.sender_flight_mean_bytes is None or most == seen:
        return []
    return [f"in flight as the sender saw it: mean {bytes_text(direction.sender_flight_mean_bytes)}, at most {most}"]


def render_start(direction: Direction) -> list[str]:
    """Render initial flight, slow start and congestion window."""
    lines = []
    start = []
    if direction.initial_flight_bytes is not None:
        start.append(f"{bytes_text(direction.initial_flight_bytes)} before the first ACK")
    if direction.slow_start_ns:
        start.append(f"{time_text(direction.slow_start_ns)} in slow start")
    if start:
        lines.append(f"start: {', '.join(start)}")
    window = []
    if direction.cwnd_estimate_max_bytes is not None:
        most = bytes_text(direction.cwnd_estimate_max_bytes)
        # In recovery, data reported by SACK is outstanding but not in the congestion window.
        has_lost = direction.recoveries or direction.rto_retransmissions
        window.append(f"{most} outstanding at most, SACKed bytes included" if has_lost else f"at least {most}")
    if direction.cwnd_model_bytes is not None:
        window.append(f"{bytes_text(direction.cwnd_model_bytes)} at the end by Linux's rules")
    if window:
        lines.append(f"congestion window: {', '.join(window)}")
    if direction.tinygrams:
        small = count_text(direction.tinygrams, "segment")
        lines.append(f"tinygrams: {small} smaller than the MSS followed at once by more data")
    return lines


def render_algorithm(algorithm: Algorithm | None) -> list[str]:
    """Render the sender's congestion control and its evidence; empty if unknown."""
    if algorithm is None:
        return []
    return [f"congestion control: {algorithm.name} ({algorithm.confidence}): {algorithm.evidence}"]


def render_acks(receiver: str, direction: Direction) -> list[str]:
    """Render how the receiver acknowledged, if not with one ACK for two segments."""
    counted = [
        (direction.delayed_acks, f"{direction.delayed_acks:,} delayed"),
        (direction.stretch_acks, f"{direction.stretch_acks:,} stretched over more than two segments"),
        (direction.acks_missing or 0, f"{direction.acks_missing or 0:,} lost on their way (by IP identification)"),
        (direction.compressed_acks, f"{direction.compressed_acks:,} compressed"),
        (direction.partial_acks, f"{direction.partial_acks:,} partial"),
        (direction.dsacks, f"{direction.dsacks:,} with DSACK ({bytes_text(direction.dsack_bytes)})"),
        (direction.acked_unseen, f"{direction.acked_unseen:,} of data not captured"),
    ]
    texts = [text for count, text in counted if count]
    return [f"ACKs of the {receiver}: {', '.join(texts)}"] if texts else []


def render_round_trips(receiver: str, direction: Direction, shares: RoundTrips) -> list[str]:
    """Render the minimum round trip and percentiles over the ACKs, as measured at the capture point."""
    if not direction.rtt_samples:
        return []
    heads = ("least", "5 %", "25 %", "50 %", "75 %", "95 %", "99 %")
    percentiles = (shares.p5_ns, shares.p25_ns, shares.p50_ns, shares.p75_ns, shares.p95_ns, shares.p99_ns)
    # Percentiles are exact within one part in 128, the minimum is exact.
    values = (direction.rtt_min_ns, *(max(ns or 0, direction.rtt_min_ns or 0) for ns in percentiles))
    count = count_text(direction.rtt_samples, "ACK")
    return [
        f"from the capture point to the {receiver} and back, {count}:",
        f"{'share of ACKs':13}" + "".join(f"{head:>9}" for head in heads),
        f"{'round trip':13}" + "".join(f"{time_text(ns):>9}" for ns in values),
    ]
