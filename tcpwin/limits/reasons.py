"""Write the reason for a verdict's limit, with numbers.

In: a judged direction and the kind of reason. Out: text. Judges nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from tcpwin.analysis import FEWEST_FOR_P95, Direction, DirectionName, MeasuredConnection
from tcpwin.limits.budget import Budget
from tcpwin.limits.roles import role_of
from tcpwin.limits.tables import LIMIT_NAMES, RECOVERY_ITEMS
from tcpwin.units import bytes_text, count_text, rate_text, rest_text, time_text

LEAST_PART = 0.0005
"""Share of a sum below which a part does not show in three digits."""


class Seen(NamedTuple):
    """A judged direction.

    Attributes:
        connection: detached, as the analysis keeps verdicts.
        how: the kind of reason.
        is_answering: whether most of the sender's idle time was spent preparing answers.
        is_doubled: whether the capture seems to hold each packet twice.
    """

    connection: MeasuredConnection
    name: DirectionName
    budget: Budget
    how: str
    is_answering: bool
    is_doubled: bool

    @property
    def data(self) -> Direction:
        """The direction."""
        return self.connection.a_to_b if self.name == "a_to_b" else self.connection.b_to_a

    @property
    def sender(self) -> str:
        """The sender's role."""
        return role_of(self.connection, self.name[0])

    @property
    def receiver(self) -> str:
        """The receiver's role."""
        return role_of(self.connection, self.name[-1])


def reason_of(seen: Seen, limit: str) -> str:
    """Return the reason for a limit, from the sender's capture alone."""
    reason = _REASONS.get(limit)
    return LIMIT_NAMES[limit] if reason is None else reason(seen)


def _reader(seen: Seen) -> str:
    data = seen.data
    if seen.how == "window_times":
        reason = _window_sum(seen)
    elif seen.how == "window_low":
        mean, most = data.receive_window_mean_bytes or 0, data.receive_window_max_bytes or 0
        reason = f"window {bytes_text(mean)} on average, {bytes_text(most)} at most: unread data fills the rest"
    else:
        reason = "the window closes while data waits"
    return reason + _kernel_words(seen)


def _window_sum(seen: Seen) -> str:
    """Return the time that the sender waited for the receiver, as a sum of its parts."""
    data, items_ns = seen.data, seen.budget.items_ns
    times = count_text(data.zero_window_episode_count, "time")
    parts_ns = {
        "with the window full (no room for another segment)": items_ns["window_full"] + items_ns["small_window"],
        f"at zero window (no room offered, {times})": items_ns["zero_window"],
        "with the window open again, but kept small by unread data": items_ns["reader"],
    }
    total_ns = sum(parts_ns.values())
    parts = [f"{time_text(ns)} {what}" for what, ns in parts_ns.items() if ns >= LEAST_PART * total_ns and ns]
    life = time_text(seen.connection.duration_ns)
    waited = f"the {seen.sender} waited "
    if len(parts) == 1:
        return waited + parts[0]
    return f"{waited}{time_text(total_ns)} of {life}: {' + '.join(parts)}" if parts else waited


def _window(seen: Seen) -> str:
    data = seen.data
    if data.window_scale.state == "disabled":
        return f"{_ceiling(seen, 65_535)}{_kernel_words(seen)}"
    if data.receive_window_max_bytes is None:
        return "flight keeps stopping where the smallest possible window would end"
    reason = _ceiling(seen, data.receive_window_max_bytes) + _kernel_words(seen)
    if seen.how == "queue_likely":
        reason += f"; but round trips take {time_text(data.rtt_smoothed_ns or 0)}: it may fill the path already"
    return reason


def _ceiling(seen: Seen, window_bytes: int) -> str:
    """Return the rate that a window allows on the path."""
    round_trip_ns = seen.connection.path_rtt_ns
    text = f"the {seen.receiver}'s window was {bytes_text(window_bytes)} at most"
    if round_trip_ns:
        allowed = rate_text(window_bytes * 8e9 / round_trip_ns)
        text += f", which allows {allowed} over a round trip of {time_text(round_trip_ns)}"
    return text


def _kernel_words(seen: Seen) -> str:
    if seen.budget.kernel is None:
        return ""
    counted = time_text(seen.budget.kernel.rwnd_limited_ns)
    return f"; the {seen.sender}'s kernel counted {counted} of it (rwnd_limited)"


def _application(seen: Seen) -> str:
    if seen.is_answering:
        return _responder(seen)
    idle_ns, data = seen.budget.items_ns["application"], seen.data
    reason = f"{seen.sender} idle for {time_text(idle_ns)}"
    if (over_ns := _over_ns(seen)) * 2 > idle_ns:
        reason += _sum(idle_ns, over_ns, "after the last data", "before")
    elif data.idle_gaps and not data.zero_window_ns:
        pauses = f"in {count_text(data.idle_gaps, 'pause')} longer than the RTO"
        reason += _sum(idle_ns, data.idle_ns, pauses, "in shorter pauses and after the last data")
    if seen.connection.turns_state == "scheduled":
        reason += f"; its messages began a fixed time apart, however long after those of the {seen.receiver}"
    elif data.turns > 1:
        reason += f": {seen.sender} and {seen.receiver} take turns"
    if seen.how == "paced":
        reason += "; but every segment is full, as when TCP paces them at less than one per round trip"
    return reason


def _responder(seen: Seen) -> str:
    connection = seen.connection
    took = time_text(connection.responder_turn_ns)
    return f"{count_text(connection.exchanges, 'answer')} took {took} to prepare{work_spread(connection)}"


def work_spread(connection: MeasuredConnection) -> str:
    """Describe how long a responder's answers took to prepare, for use after a total; empty for a single answer."""
    answers = connection.b_to_a
    if answers.work_p50_ns is None or connection.exchanges < 2:
        return ""
    times = (answers.work_p50_ns, answers.work_p95_ns or 0, answers.work_max_ns or 0)
    median, p95, longest = (time_text(ns) for ns in times)
    if connection.exchanges == 2:
        # The engine's median of two values is the smaller one.
        return f", {longest} for one"
    return f": median {median}{f', p95 {p95}' if connection.exchanges >= FEWEST_FOR_P95 else ''}, longest {longest}"


def _requester(seen: Seen) -> str:
    connection = seen.connection
    requester = role_of(connection, "a")
    waited = time_text(connection.requester_turn_ns)
    return f"the {requester} had every answer for {waited} of {time_text(connection.duration_ns)} before it asked again"


def _round_trips(seen: Seen) -> str:
    connection = seen.connection
    round_trip = time_text(connection.path_rtt_ns or 0)
    return (
        f"{count_text(connection.exchanges, 'exchange')} over a round trip of {round_trip}: "
        f"{time_text(connection.round_trip_turns_ns)} of {time_text(connection.duration_ns)} on the way"
    )


def _idle(seen: Seen) -> str:
    connection = seen.connection
    return f"no request was open for {time_text(connection.nothing_asked_ns)} of {time_text(connection.duration_ns)}"


def _over_ns(seen: Seen) -> int:
    """Return the time from the last data of either end to the connection's end."""
    connection = seen.connection
    last_ns = [each.last_data_ns for each in (connection.a_to_b, connection.b_to_a) if each.last_data_ns is not None]
    return connection.end_ns - max(last_ns, default=connection.end_ns)


def _sum(total_ns: int, most_ns: int, where: str, else_where: str) -> str:
    """Return a time as the sum of a part and the rest; empty if the part exceeds it."""
    rest_ns = total_ns - most_ns
    if rest_ns < 0:
        return ""
    if rest_ns < LEAST_PART * total_ns:
        return f", {where}"
    return f": {time_text(most_ns)} {where} + {rest_text(total_ns, most_ns)} {else_where}"


def _send_buffer(seen: Seen) -> str:
    if seen.budget.kernel is not None:
        return f"share from the {seen.sender}'s kernel (sndbuf_limited)"
    return f"the {seen.sender}'s flight stayed the same, below every other limit"


def _path(seen: Seen) -> str:
    data = seen.data
    rate = "" if data.goodput_bps is None else f", {rate_text(data.goodput_bps)}"
    if rate and data.path_rate_bps:
        rate = f", about {rate_text(data.path_rate_bps)} ({rate_text(data.goodput_bps or 0)} over the whole transfer)"
    if data.queue_mean_ns and seen.connection.path_rtt_ns and data.queue_mean_ns > seen.connection.path_rtt_ns:
        rate += f"; packets queue for {time_text(data.queue_mean_ns)} on average"
    return f"steady at the best rate seen{rate}"


def _loss(seen: Seen) -> str:
    data, items_ns = seen.data, seen.budget.items_ns
    reason = f"{data.resent_segments:,} of {count_text(data.data_segments, 'segment')} sent again"
    reason += f", {data.rto_retransmissions:,} by timeout" if data.rto_retransmissions else ""
    after_ns, recovery_ns = items_ns["after_loss"], sum(items_ns[item] for item in RECOVERY_ITEMS)
    if recovery_ns and after_ns:
        # A loss keeps costing time after its repair.
        reason += f"; loss limited it for {time_text(recovery_ns + after_ns)}: {time_text(recovery_ns)} in recovery + "
        reason += f"{time_text(after_ns)} with the congestion window still cut by loss"
    return reason


def _congestion(seen: Seen) -> str:
    items_ns = seen.budget.items_ns
    if items_ns["slow_start"] >= items_ns["congestion"]:
        return "slow start, as at the beginning of every transfer"
    return "no other limit shows"


def _idle_restart(seen: Seen) -> str:
    return f"{count_text(seen.data.idle_restarts, 'restart')} with a smaller congestion window after a pause"


def _timer(seen: Seen) -> str:
    return f"{count_text(seen.data.rto_retransmissions, 'segment')} sent again by timeout"


def _delayed_ack(seen: Seen) -> str:
    small = count_text(seen.data.nagle_delays, "small segment")
    return f"Nagle's algorithm on the {seen.sender} held {small} back until the {seen.receiver}'s delayed ACK came"


def _nagle(seen: Seen) -> str:
    small = count_text(seen.data.nagle_waits, "small segment")
    return f"Nagle's algorithm on the {seen.sender} held {small} back for the ACK of a small one"


def _handshake(seen: Seen) -> str:
    connection = seen.connection
    if connection.close == "refused":
        return "refused"
    if connection.close == "unanswered":
        return "no answer: lost on the way, dropped by a firewall, or no such host"
    if resent := connection.a_to_b.syn_retransmissions + connection.b_to_a.syn_retransmissions:
        return f"{count_text(resent, 'segment')} of the handshake sent again"
    setup = time_text(seen.budget.items_ns["handshake"])
    total = time_text(seen.budget.total_ns)
    return (
        "only the handshake was captured" if setup == total else f"setting up took {setup} of the connection's {total}"
    )


def _silent(seen: Seen) -> str:
    data = seen.data
    tries = (
        f": {count_text(data.stall_at_end_tries, 'retransmission or probe', 'retransmissions or probes')} unanswered"
    )
    closed = ", which had closed its receive window" if data.receive_window_last_bytes == 0 else ""
    return f"no more answers from the {seen.receiver}{closed}{tries if data.stall_at_end_tries else ''}"


def _policer(seen: Seen) -> str:
    if rate := seen.data.path_rate_bps:
        return f"losses with no queue before them, and the same rate between all of them: {rate_text(rate)}"
    return "many scattered segments of one flight dropped, with no queue before them"


def _capture(seen: Seen) -> str:
    data = seen.data
    if seen.connection.sampled:
        return "the capture holds only samples of the connection"
    if seen.is_doubled:
        return "the capture holds each packet twice, as sent and as received"
    if data.clock_step_ns * 2 > seen.budget.items_ns["unknown"]:
        return f"the capture's clock advanced {time_text(data.clock_step_ns)} more than its packets' timestamps"
    if data.window_scale.state in ("unknown", "syn_only"):
        if data.syn_seen:
            return "the capture lacks a SYN, and with it the window scale"
        return "the capture lacks the SYNs, and with them the window scales"
    if data.flight_max_bytes is None:
        return "one side of the connection was not captured"
    return "the capture does not show it"


def _nothing(_: Seen) -> str:
    return "neither end sent any data"


_REASONS = {
    "receiver_window": _window,
    "receiver_application": _reader,
    "sender_application": _application,
    "requester_application": _requester,
    "round_trips": _round_trips,
    "idle": _idle,
    "send_buffer": _send_buffer,
    "path_rate": _path,
    "path_loss": _loss,
    "path_policer": _policer,
    "congestion_control": _congestion,
    "idle_restart": _idle_restart,
    "retransmission_timer": _timer,
    "delayed_ack": _delayed_ack,
    "nagle": _nagle,
    "handshake": _handshake,
    "peer_silent": _silent,
    "capture": _capture,
    "none": _nothing,
}
