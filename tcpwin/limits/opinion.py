"""What a limit means for a direction: in words, whose it is, how sure that is by itself, and what to do about it.

In: a direction with its budget. Out: Opinion. It weighs no limits against each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tcpwin.analysis import Direction, DirectionName, cached
from tcpwin.limits.budget import Budget
from tcpwin.limits.connection import Connection
from tcpwin.limits.division import (
    ORDER,
    Traits,
    is_growing_of,
    is_slow_of,
    pick_one,
    silent_by_limit,
    traits_of,
)
from tcpwin.limits.gains import Carried, Gain, carried_of, gain_of
from tcpwin.limits.names import FIND_LOSS, read_faster
from tcpwin.limits.roles import ENDS, role_of
from tcpwin.limits.tables import RECOVERY_ITEMS
from tcpwin.units import bytes_text, count_text, rate_text, rest_text, time_text

LEAST_PART = 0.0005
"""Of a sum: a smaller part does not show in three digits."""
WAITING = 2
"""Times: in drawn worlds that a window did limit, a round trip was 1.9 times the least one at most."""


TIGHT_SHARE = 0.1
"""A receiver whose window held the sender for more of the time may have refused segments for want of memory."""
ONLY_SHARE = 0.8
"""Of the time that a sender waited for its receiver, so much in one stop, and the receiver reads well otherwise."""
PACED_SEGMENTS = 16
"""Fewer full segments in a row are a write of just that length by chance."""
SPARE_SHARE = 0.7
"""A transfer that had less of the path's rate does not use all that the path gives (SPARE, timing/full_path.rs)."""


def is_tight(data: Direction, busy_ns: int) -> bool:
    """Whether the receive window held the sender for so long that the receiver may have refused segments."""
    return data.window_limited_ns + data.zero_window_ns > TIGHT_SHARE * busy_ns


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a limit means.

    Attributes:
        phrase: the limit in words, after ``limited by``.
        meaning: a sentence on it, with its number left open; empty where the phrase says all.
        reason: why, with numbers.
    """

    phrase: str
    owner: str
    side: str | None
    confidence: str
    reason: str
    meaning: str = ""
    fix: str | None = None

    def restated(self, owner: str, side: str | None, confidence: str, reason: str, fix: str | None) -> Opinion:
        """The same limit as a finding tells it; the meaning is its owner's."""
        meaning = self.meaning if owner == self.owner else ""
        return replace(self, owner=owner, side=side, confidence=confidence, reason=reason, fix=fix, meaning=meaning)


@dataclass(eq=False)
class Situation:
    """A direction of a connection, with its budget."""

    connection: Connection
    name: DirectionName
    budget: Budget

    @cached
    def traits(self) -> Traits:
        """What the direction is like."""
        return traits_of(self._number, self._is_scaled, self.budget.items_ns)

    @cached
    def is_slow(self) -> bool:
        """The trait of that name, by itself: it decides whose a window's time is."""
        return bool(is_slow_of(self._number, self._is_scaled, self.budget.items_ns))

    @property
    def _is_scaled(self) -> bool:
        # All of `data.window_scale` would be made for this one word.
        engine = self.connection.analysis._engine
        is_from_a = self.name == "a_to_b"
        return bool(engine.direction_value(self.connection.id, is_from_a, "window_scale_state") != "disabled")

    def _number(self, name: str) -> Any:
        return getattr(self.data, name) or 0

    @cached
    def carried(self) -> Carried:
        """What the direction carried, and over what."""
        return carried_of(self._number, self.connection.path_rtt_ns or 0)

    @property
    def is_tight(self) -> bool:
        """As the function of that name says."""
        return is_tight(self.data, max(self.connection.duration_ns - self.data.idle_ns, 0))

    @cached
    def silent_ns(self) -> dict[str, int]:
        """Of each limit the time in which nothing came through."""
        return silent_by_limit(self.budget.items_ns, self.is_slow, pick_one)

    def gain(self, limit: int, times_ns: Sequence[int]) -> Gain:
        """What lifting a limit, given by its place in `ORDER`, would have gained, where each has so much time."""
        is_growing = is_growing_of(self.budget.items_ns)
        return gain_of(limit, times_ns, ORDER, self.carried, is_growing, pick_one, self.silent_ns)

    @cached
    def data(self) -> Direction:
        """The direction."""
        return self.connection.a_to_b if self.name == "a_to_b" else self.connection.b_to_a

    @property
    def sender(self) -> str:
        """The sender's role."""
        return role_of(self.connection, "a" if self.name == "a_to_b" else "b")

    @property
    def receiver(self) -> str:
        """The receiver's role."""
        return role_of(self.connection, "b" if self.name == "a_to_b" else "a")

    @property
    def sending_end(self) -> str:
        """The sender's machine name, ``client`` or ``server``."""
        return ENDS["a" if self.name == "a_to_b" else "b"]

    @property
    def receiving_end(self) -> str:
        """The receiver's machine name."""
        return ENDS["b" if self.name == "a_to_b" else "a"]

    @property
    def is_handshake_disturbed(self) -> bool:
        """Whether a segment of the handshake was sent again, or nobody answered."""
        connection = self.connection
        is_again = connection.a_to_b.syn_retransmissions or connection.b_to_a.syn_retransmissions
        return bool(is_again) or connection.close == "unanswered"

    @property
    def is_doubled(self) -> bool:
        """Whether both SYNs and much of the data are there again: what TW610 makes sure of."""
        both = (self.connection.a_to_b, self.connection.b_to_a)
        return all(each.syn_retransmissions for each in both) and bool(self.traits.is_doubled)

    @property
    def is_stalled(self) -> bool:
        """Whether the capture, or a reset, ended the connection in a stall."""
        return self.data.stall_at_end is not None

    @property
    def seen(self) -> str:
        """How sure what the sender waited for is, by where the capture was made."""
        return "certain" if self.data.view == "sender" else "likely"


def opinion_of(seen: Situation, limit: str) -> Opinion:
    """What a limit means for the direction."""
    return _OPINIONS[limit](seen)


def _reader(seen: Situation) -> Opinion:
    data, receiver = seen.data, seen.receiver
    confidence = "certain" if seen.budget.kernel is not None else seen.seen
    most, mean = data.receive_window_max_bytes, data.receive_window_mean_bytes
    stop_ns = only_stop_ns(data)
    if data.zero_window_episode_count:
        if seen.traits.is_mostly_closed:
            confidence = "certain"
        reason = _window_sum(seen)
    elif seen.traits.is_read_late:
        confidence = "likely"
        reason = _window_sum(seen)
    elif most and mean is not None:
        confidence = "likely" if confidence == "certain" else confidence
        reason = f"window {bytes_text(mean)} on average, {bytes_text(most)} at most: unread data fills the rest"
    else:
        reason = "the window closes while data waits"
    return Opinion(
        f"a slow reader on the {receiver}",
        f"{seen.receiving_end}_application",
        seen.receiving_end,
        confidence,
        reason + _kernel_words(seen),
        f"The {receiver}'s application stopped reading once, for at least {time_text(stop_ns)}."
        if stop_ns
        else f"The {receiver}'s application keeps its receive window full.",
        read_faster(f"the {receiver}", stop_ns),
    )


def only_stop_ns(data: Direction) -> int:
    """How long the receiver did not read, where that was once and nearly all that the sender waited for it; else 0."""
    waited_ns = data.zero_window_ns + data.window_limited_ns
    is_only = data.zero_window_episode_count == 1 and data.zero_window_ns >= ONLY_SHARE * waited_ns
    return data.zero_window_ns if is_only else 0


def _window_sum(seen: Situation) -> str:
    """The time that the sender waited for the receiver, as a sum of its parts."""
    data, items_ns = seen.data, seen.budget.items_ns
    times = count_text(data.zero_window_episode_count, "time")
    parts_ns = {
        "with the window full (no room for another segment)": items_ns["window_full"] + items_ns["small_window"],
        f"at zero window (no room offered, {times})": items_ns["zero_window"],
        "for an application that read late what had arrived": items_ns["reader"],
    }
    total_ns = sum(parts_ns.values())
    parts = [f"{time_text(ns)} {what}" for what, ns in parts_ns.items() if ns >= LEAST_PART * total_ns and ns]
    life = time_text(seen.connection.duration_ns)
    waited = f"the {seen.sender} waited "
    if len(parts) == 1:
        return waited + parts[0]
    return f"{waited}{time_text(total_ns)} of {life}: {' + '.join(parts)}" if parts else waited


def _window(seen: Situation) -> Opinion:
    data, receiver = seen.data, seen.receiver
    confidence = "certain" if seen.budget.kernel is not None else seen.seen
    phrase, most = f"the {receiver}'s receive window", data.receive_window_max_bytes
    fix = f"Let the {receiver}'s receive window grow."
    if data.window_scale.state == "disabled":
        by = "b" if data.window_scale.disabled_by == "b" else "a"
        whose = role_of(seen.connection, by)
        reason = f"{_ceiling(seen, 65_535)}{_kernel_words(seen)}"
        meaning = f"Window scaling is off: the {whose}'s SYN has no window scale option."
        fix = f"Let the {whose} offer window scaling."
        return Opinion(phrase, f"{ENDS[by]}_host", ENDS[by], confidence, reason, meaning, fix)
    host = f"{seen.receiving_end}_host"
    if most is None:
        reason = "flight keeps stopping where the smallest possible window would end"
        return Opinion(phrase, host, seen.receiving_end, "possible", reason, "", fix)
    reason = _ceiling(seen, most) + _kernel_words(seen)
    if _is_waiting(seen, most):
        confidence = "possible"
        reason += f"; but round trips take {time_text(seen.data.rtt_smoothed_ns or 0)}: it may fill the path already"
    return Opinion(phrase, host, seen.receiving_end, confidence, reason, "", fix)


def _is_waiting(seen: Situation, window_bytes: int) -> bool:
    """Whether a full window waits for most of its round trip, and carries less than half of what it allows.

    A window of a few segments can fill a path that two fill. Its queue is too short to be told for one by its delay,
    and lifting the window gains nothing (docs/worlds.md, seed 4).
    """
    data, least_ns = seen.data, seen.connection.path_rtt_ns
    if not least_ns or data.rtt_smoothed_ns is None or data.goodput_bps is None:
        return False
    allowed_bps = window_bytes * 8e9 / least_ns
    return data.rtt_smoothed_ns > WAITING * least_ns and allowed_bps > WAITING * data.goodput_bps


def _ceiling(seen: Situation, window_bytes: int) -> str:
    """What a window allows on the path."""
    round_trip_ns = seen.connection.path_rtt_ns
    text = f"the {seen.receiver}'s window was {bytes_text(window_bytes)} at most"
    if round_trip_ns:
        allowed = rate_text(window_bytes * 8e9 / round_trip_ns)
        text += f", which allows {allowed} over a round trip of {time_text(round_trip_ns)}"
    return text


def _kernel_words(seen: Situation) -> str:
    return "" if seen.budget.kernel is None else f"; share from the {seen.sender}'s kernel (rwnd_limited)"


def _application(seen: Situation) -> Opinion:
    idle_ns, data = seen.budget.items_ns["application"], seen.data
    reason = f"{seen.sender} idle for {time_text(idle_ns)}"
    if data.turns == 1 and data.first_byte_p50_ns and seen.traits.is_answering:
        reason += _sum(
            idle_ns, data.first_byte_p50_ns, "between the request and the first byte of the answer", "at other times"
        )
    elif (over_ns := _over_ns(seen)) * 2 > idle_ns:
        reason += _sum(idle_ns, over_ns, "after the last data", "before")
    elif data.idle_gaps and not data.zero_window_ns:
        pauses = f"in {count_text(data.idle_gaps, 'pause')} longer than the RTO"
        reason += _sum(idle_ns, data.idle_ns, pauses, "in shorter ones, at the end, or with its last data on the way")
    if seen.data.turns > 1:
        reason += f": {seen.sender} and {seen.receiver} take turns"
    owner, meaning = (
        f"{seen.sending_end}_application",
        f"The {seen.sender} had nothing to send.",
    )
    if seen.traits.is_answering:
        median = " (median)" if seen.data.turns > 1 else ""
        meaning = f"The {seen.sender}'s application took {{answer}} to answer{median}. If that is too long, look there."
    if seen.connection.multipath:
        meaning = f"The {seen.sender} sent nothing on this subflow of Multipath TCP."
    confidence = seen.seen
    if _may_be_paced(seen):
        confidence = "possible"
        meaning = f"The {seen.sender} had nothing to send, or paced its segments one by one."
        reason += "; but every segment is full, as where TCP paces them, slower than one a round trip"
    return Opinion(f"the {seen.sender}'s application", owner, seen.sending_end, confidence, reason, meaning)


def _may_be_paced(seen: Situation) -> bool:
    """Whether most of the idle time lies between full segments, each sent before the timeout.

    A sender that paces (BBR, fq) below a segment a round trip has nothing in flight between two, like one whose
    application has nothing to send. But what an application writes seldom fills its last segment: where all but the
    last are full, no end of a write shows.
    """
    data, idle_ns = seen.data, seen.budget.items_ns["application"]
    mss, segments = data.mss_bytes or 0, data.data_segments
    if segments < PACED_SEGMENTS or mss == 0 or (data.max_payload_bytes or 0) > mss:
        # A segment as captured before segmentation does not tell where a write ended.
        return False
    is_full = data.payload_bytes > (segments - 1) * mss
    elsewhere_ns = (data.first_byte_p50_ns or 0) * data.turns + data.idle_ns + _over_ns(seen)
    return bool(is_full and (idle_ns - elsewhere_ns) * 2 > idle_ns)


def _over_ns(seen: Situation) -> int:
    """Time from the last data of either end to the connection's end."""
    connection = seen.connection
    last_ns = [each.last_data_ns for each in (connection.a_to_b, connection.b_to_a) if each.last_data_ns is not None]
    return connection.end_ns - max(last_ns, default=connection.end_ns)


def _sum(total_ns: int, most_ns: int, where: str, else_where: str) -> str:
    """A time as the sum of a part and the rest; nothing where the part is not within it."""
    rest_ns = total_ns - most_ns
    if rest_ns < 0:
        return ""
    if rest_ns < LEAST_PART * total_ns:
        return f", {where}"
    return f": {time_text(most_ns)} {where} + {rest_text(total_ns, most_ns)} {else_where}"


def _send_buffer(seen: Situation) -> Opinion:
    confidence = "possible" if seen.budget.kernel is None else "certain"
    reason = f"the {seen.sender}'s flight stayed the same, below every other limit"
    if seen.budget.kernel is not None:
        reason = f"share from the {seen.sender}'s kernel (sndbuf_limited)"
    fix = f"Let the {seen.sender}'s send buffer grow."
    return Opinion(
        f"the {seen.sender}'s send buffer", f"{seen.sending_end}_host", seen.sending_end, confidence, reason, "", fix
    )


def _path(seen: Situation) -> Opinion:
    data = seen.data
    rate = "" if data.goodput_bps is None else f", {rate_text(data.goodput_bps)}"
    if rate and data.path_rate_bps:
        rate = f", about {rate_text(data.path_rate_bps)} ({rate_text(data.goodput_bps)} over the whole transfer)"
    if data.queue_mean_ns and seen.connection.path_rtt_ns and data.queue_mean_ns > seen.connection.path_rtt_ns:
        rate += f"; a queue holds each packet up for {time_text(data.queue_mean_ns)} on average"
    meaning = "The transfer uses all that the path gives: only a faster path would help."
    path_ns = seen.budget.share("path") * seen.budget.total_ns
    had_bps = data.unique_bytes * 8e9 / path_ns if path_ns else 0.0
    if data.path_rate_bps and 0 < had_bps < SPARE_SHARE * data.path_rate_bps:
        # Not even all of it, carried in that time alone, fills the path: what limited it is the queue.
        most, path = rate_text(had_bps), rate_text(data.path_rate_bps)
        meaning = f"It had at most {most} of the path's {path}: its queue is shared, or it has not grown back since the"
        meaning += " queue overflowed."
    return Opinion("the path's rate", "nobody", None, "likely", f"steady at the best rate seen{rate}", meaning)


def _loss(seen: Situation) -> Opinion:
    data = seen.data
    reason = f"{data.resent_segments:,} of {count_text(data.data_segments, 'segment')} sent again"
    reason += f", {data.rto_retransmissions:,} by timeout" if data.rto_retransmissions else ""
    confidence, items_ns = seen.seen, seen.budget.items_ns
    after_ns, recovery_ns = items_ns["after_loss"], sum(items_ns[item] for item in RECOVERY_ITEMS)
    if not seen.traits.is_mostly_recovering:
        confidence = "likely"
    if recovery_ns and after_ns:
        # What a loss costs is not over with its repair.
        reason += f"; loss limited it for {time_text(recovery_ns + after_ns)}: {time_text(recovery_ns)} in recovery + "
        reason += f"{time_text(after_ns)} with the congestion window still cut by loss"
    if seen.traits.is_queued:
        # What a queue drops when it is full is a symptom of the path's rate.
        confidence = "likely"
    return Opinion("loss on the path", "network", None, confidence, reason, "", FIND_LOSS)


def _congestion(seen: Situation) -> Opinion:
    phrase = f"the {seen.sender}'s congestion window"
    if seen.traits.is_growing:
        meaning = "The congestion window was still growing."
        return Opinion(phrase, "nobody", None, "likely", "slow start, as at the beginning of every transfer", meaning)
    return Opinion(phrase, "nobody", None, "likely", "no other limit shows")


def _idle_restart(seen: Situation) -> Opinion:
    restarts = count_text(seen.data.idle_restarts, "restart")
    reason = f"{restarts} with a smaller congestion window after a pause"
    fix = f"Switch off slow start after idle on the {seen.sender} (net.ipv4.tcp_slow_start_after_idle)."
    phrase = "idle restarts (slow start again after a pause)"
    return Opinion(phrase, f"{seen.sending_end}_host", seen.sending_end, seen.seen, reason, "", fix)


def _timer(seen: Situation) -> Opinion:
    reason = f"{count_text(seen.data.rto_retransmissions, 'segment')} sent again by timeout"
    return Opinion(
        f"the {seen.sender}'s retransmission timeouts", f"{seen.sending_end}_host", seen.sending_end, "likely", reason
    )


def _delayed_ack(seen: Situation) -> Opinion:
    reason = f"{count_text(seen.data.nagle_delays, 'small segment')} held back until an ACK came"
    fix = f"Let the {seen.sender}'s application write whole messages, or set TCP_NODELAY."
    return Opinion(
        f"the {seen.receiver}'s delayed ACKs",
        f"{seen.sending_end}_application",
        seen.sending_end,
        "likely",
        reason,
        "",
        fix,
    )


def _handshake(seen: Situation) -> Opinion:
    if seen.connection.close == "refused":
        return Opinion("the handshake", "server_application", "server", "likely", "refused", "The server refused it.")
    if seen.connection.close == "unanswered":
        reason = "no answer: lost on the way, dropped by a firewall, or no such host"
        return Opinion("the handshake", "network", None, "possible", reason, "The server never answered.")
    resent = seen.connection.a_to_b.syn_retransmissions + seen.connection.b_to_a.syn_retransmissions
    if resent:
        reason = f"{count_text(resent, 'segment')} of the handshake sent again"
        return Opinion("the handshake", "network", None, "likely", reason, "", FIND_LOSS)
    setup = time_text(seen.budget.items_ns["handshake"])
    reason = f"setting up took {setup} of the connection's {time_text(seen.budget.total_ns)}"
    return Opinion("the handshake", "nobody", None, "certain", reason)


def _silent(seen: Situation) -> Opinion:
    reason = f"no more answers from the {seen.receiver}"
    fix = f"Check whether the {seen.receiver} was up, and firewalls and NAT on the path."
    return Opinion(f"a silent peer, the {seen.receiver}", "network", None, "likely", reason, "", fix)


def _policer(seen: Situation) -> Opinion:
    rate = seen.data.path_rate_bps
    reason = "losses with no queue before them, and the same rate between all of them"
    if not rate:
        reason = "many segments of one flight dropped here and there, with no queue before them"
    return Opinion(
        "a policer on the path",
        "network",
        None,
        "likely",
        reason + (f": {rate_text(rate)}" if rate else ""),
        "It drops what is above its rate.",
        f"Have the policer's rate raised, or pace the {seen.sender} below it.",
    )


def _capture(seen: Situation) -> Opinion:
    return Opinion("what was not captured", "nobody", None, "possible", _unknown(seen))


def _nothing(_: Situation) -> Opinion:
    return Opinion("nothing", "nobody", None, "likely", "neither end sent any data")


def _unknown(seen: Situation) -> str:
    data = seen.data
    if seen.connection.sampled:
        return "the capture holds only samples of the connection"
    if seen.is_doubled:
        return "the capture holds each packet twice, as sent and as received"
    if data.clock_step_ns * 2 > seen.budget.items_ns["unknown"]:
        return f"the capture's clock went {time_text(data.clock_step_ns)} further than the timestamps of its packets"
    if data.window_scale.state in ("unknown", "syn_only"):
        if data.syn_seen:
            return "the capture lacks a SYN, and with it the scale of the windows"
        return "the capture lacks the SYNs, and with them the scale of the windows"
    if data.flight_max_bytes is None:
        return "one side of the connection was not captured"
    return "the capture does not show it"


_OPINIONS = {
    "receiver_window": _window,
    "receiver_application": _reader,
    "sender_application": _application,
    "send_buffer": _send_buffer,
    "path_rate": _path,
    "path_loss": _loss,
    "path_policer": _policer,
    "congestion_control": _congestion,
    "idle_restart": _idle_restart,
    "retransmission_timer": _timer,
    "delayed_ack": _delayed_ack,
    "handshake": _handshake,
    "peer_silent": _silent,
    "capture": _capture,
    "none": _nothing,
}
