"""Write the sentences of a verdict: limit, confidence, meaning and fix.

In: the engine's statement. Out: text. Judges nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from tcpwin.limits.names import FIND_LOSS, read_faster
from tcpwin.limits.tables import LIMIT_PHRASES
from tcpwin.units import count_text, rate_text, share_text, time_text

EMPTY = "Too short to judge."
SMALL_SHARE = 0.1
"""Below this share, the limit does not explain where most of the time went."""
UNNAMED = {
    "none": "Nothing limited it",
    "capture": "Not known what limited it for {share} of the time",
    "idle": "Nothing to fix: no request was outstanding for {share} of the time",
}
"""Sentences for values of `limit` that do not name a limit."""
_OTHER_ROLE = {"client": "server", "server": "client", "sender": "receiver", "receiver": "sender"}
_STANDINGS = {
    "limited": "Limited by",
    "slight": "Too little time lost to be a problem: limited by",
    "fine": "Nothing to fix: limited by",
    "reported": "Other problems found; limited by",
    # The application may still have something to fix.
    "fine_in_tcp": "Nothing to fix in TCP: limited by",
}
_MEANINGS = {
    "plain": "",
    "reading_stopped": "The {receiver}'s application stopped reading once, for at least {time}.",
    "window_kept_full": "The {receiver}'s application keeps its receive window full.",
    "scaling_off": "Window scaling is off: the {unscaled}'s SYN has no window scale option.",
    "nothing_to_send": "The {sender} had nothing to send.",
    "subflow_silent": "The {sender} sent nothing on this subflow of Multipath TCP.",
    "paced_or_idle": "The {sender} had nothing to send, or paced its segments one by one.",
    "answering": "The {responder}'s application took {time} to answer{median}. If that is too long, look there.",
    "asked_late": "Everything was answered; then the {requester} asked for nothing for {time} in all.",
    "chatty": "{count} took a round trip of {time} each.",
    "nothing_asked": "The last answer was complete, and the {requester} asked for nothing more.",
    "interleaved": "Both sides send at any time, so the packets do not show whose turn it was.",
    "scheduled": "The {sender} sends at even times, whenever it was asked: by a timer, or because it is always busy.",
    "nagle_held": "Nagle's algorithm on the {sender} holds small segments back until those ACKs arrive.",
    "path_filled": "The transfer uses all that the path gives: only a faster path would help.",
    "path_shared": "It had at most {had} of the path's {path}: its queue is shared, or it has not grown back since the "
    "queue overflowed.",
    "still_growing": "The congestion window was still growing.",
    "cut_needlessly": "It was cut for losses that did not happen.",
    "refused": "The server refused it.",
    "unanswered": "The server never answered.",
    "policed": "It drops traffic above its rate.",
}
_FIXES = {
    "grow_window": "Let the {receiver}'s receive window grow.",
    "offer_scaling": "Let the {unscaled} offer window scaling.",
    "grow_send_buffer": "Let the {sender}'s send buffer grow.",
    "find_loss": FIND_LOSS,
    "keep_window_after_idle": "Switch off slow start after idle on the {sender} (net.ipv4.tcp_slow_start_after_idle).",
    "write_whole_messages": "Let the {sender}'s application write whole messages, or set TCP_NODELAY.",
    "check_peer": "Check whether the {receiver} was up, and firewalls and NAT on the path.",
    "ask_for_more": "Let the {requester}'s application ask for more at a time (larger fetches, pipelining, fewer and "
    "larger requests), or run it closer to the {responder}.",
    "raise_policer": "Have the policer's rate raised, or pace the {sender} below it.",
}


class Statement(NamedTuple):
    """The inputs of a verdict's sentences; a million verdicts have only a few hundred distinct statements.

    Attributes:
        sender: the role of the direction's sender.
        requester: the role of the end that asks.
        number, other: the numbers of `meaning`.
        fix: the kind of fix: for the limit `also` if there is one, else for `limit`.
        witness, fix_witness: evidence of both captures about the limit, and about the one that the fix addresses.
        stop_ns: duration of the receiver's only stop; 0 if irrelevant.
        is_sender_unscaled: whether the SYN without a window scale option is the sender's.
    """

    limit: str
    second: str | None
    also: str | None
    confidence: str
    standing: str
    sender: str
    requester: str
    meaning: str
    fix: str
    witness: str
    fix_witness: str
    number: float
    other: float
    stop_ns: int
    is_sender_unscaled: bool
    is_empty: bool
    share: float
    second_share: float
    also_ns: int
    also_share: float

    @property
    def receiver(self) -> str:
        """The role of the direction's receiver."""
        return _OTHER_ROLE[self.sender]

    @property
    def is_unnamed(self) -> bool:
        """Whether `named` is a sentence of its own, because `limit` names no limit."""
        return self.limit in UNNAMED and not self._is_closed_under_request

    @property
    def _is_closed_under_request(self) -> bool:
        return self.limit == "idle" and self.fix == "of_finding"

    @property
    def named(self) -> str:
        """The limit with its share and confidence: ``the client's receive window (89 % of the time, likely)``."""
        if self.is_empty:
            return EMPTY.removesuffix(".")
        if self._is_closed_under_request:
            return f"an idle time-out: the connection was closed as a request came ({self.confidence})"
        share = share_text(self.share)
        if self.limit in UNNAMED:
            return UNNAMED[self.limit].format(share=share)
        of_time = f"{share} of the time, " if self.share else ""
        named = f"{self._phrase(self.limit, self.witness)} ({of_time}{self.confidence})"
        if self.second is None:
            return named
        return f"{named} and {self._phrase(self.second)} ({share_text(self.second_share)})"

    @property
    def headline(self) -> str:
        """The first sentence, without its full stop; if there is no problem, it begins by saying so."""
        if self.is_empty or self.is_unnamed:
            return self.named
        if self.limit in ("middlebox", "peer_silent") or self._is_closed_under_request:
            return f"Broken by {self.named}"
        if self.limit == "handshake" and self.standing != "limited" and share_text(self.share) == "100 %":
            return f"Nothing to judge: no data, only {self.named}"
        if self.standing == "limited" and self.second is None and 0 < self.share < SMALL_SHARE:
            return f"Limited in part by {self.named}"
        return f"{_STANDINGS[self.standing]} {self.named}"

    @property
    def answer(self) -> str:
        """The headline, followed by the meaning of the limit."""
        meaning = "" if self.is_empty else self._filled(_MEANINGS[self.meaning], **self._numbers())
        return " ".join(filter(None, (f"{self.headline}.", meaning)))

    @property
    def beside_text(self) -> str:
        """A sentence about the limit `also` with its cost; empty without one, or if the answer names it."""
        if self.also is None or self.also == self.second:
            return ""
        cost = f"{time_text(self.also_ns)} ({share_text(self.also_share)} of the connection)"
        return f"What can be fixed: {self._phrase(self.also, self.fix_witness)} cost {cost}."

    @property
    def text(self) -> str:
        """The whole answer on one line."""
        return " ".join(filter(None, (self.answer, self.beside_text)))

    @property
    def fix_text(self) -> str | None:
        """The fix, unless it comes from a finding or from captures of both ends; None without a fix."""
        if self.fix == "read_faster":
            return read_faster(f"the {self.receiver}", self.stop_ns)
        template = _FIXES.get(self.fix)
        return None if template is None else self._filled(template)

    def _phrase(self, limit: str, witness: str = "silent") -> str:
        if witness == "refused_by_receiver":
            return f"drops in the {self.receiver}'s kernel"
        if limit == "sender_application" and self.meaning == "answering":
            return self._filled("the {responder}'s application")
        return self._filled(LIMIT_PHRASES[limit])

    def _filled(self, template: str, **numbers: str) -> str:
        if "{" not in template:
            return template
        unscaled = self.sender if self.is_sender_unscaled else self.receiver
        return template.format(
            sender=self.sender,
            receiver=self.receiver,
            requester=self.requester,
            responder=_OTHER_ROLE[self.requester],
            unscaled=unscaled,
            **numbers,
        )

    def _numbers(self) -> dict[str, str]:
        """Return the numbers of the meaning, as written."""
        if self.meaning == "path_shared":
            return {"had": rate_text(self.number), "path": rate_text(self.other)}
        if self.meaning == "asked_late":
            return {"time": time_text(int(self.number * self.other))}
        if self.meaning == "chatty":
            return {"count": count_text(int(self.number), "exchange"), "time": time_text(int(self.other))}
        return {"time": time_text(int(self.number)), "median": ("", " (median)", " once")[int(self.other)]}
