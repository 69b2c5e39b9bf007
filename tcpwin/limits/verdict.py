"""Who is to blame for a connection's speed, how sure that is, and why: one verdict from its time budget.

In: a connection with its budget, and what rules found of it, where they were asked. Out: Verdict. It reads no packets.
Findings refine the blame; where they and the budget do not agree, the verdict says so and is less sure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcpwin.analysis import Connection, Direction
from tcpwin.limits.budget import GROUPS, Budget
from tcpwin.limits.finding import CONFIDENCES, Finding, Severity
from tcpwin.units import bytes_text, count_text, rate_text, share_text, time_text

MIN_COST_NS = 200_000_000
"""Less is below what a person notices, and below Linux's shortest retransmission timeout."""
MIN_SHARE = 0.1
"""Of the time in which a sender had work: what costs less is at work as designed."""
CLOSE_SHARE = 0.1
"""Groups within this share of the duration of each other are no clear first: the rounds they are told by are coarse."""
DISAGREEING_SHARE = 0.1
"""Of the duration: packets and kernel, or budget and findings, further apart than this do not agree."""
DOUBLED_SHARE = 0.4
"""Of the data sent again: where a capture holds both ends, half of it are copies."""
DOUBLED_SEGMENTS = 10
"""Of fewer segments a few that were really lost may be as many."""
MISSED_SHARE = 0.01
"""Of the data: a capture that lacks more makes flights, and what limited them, uncertain."""
CONFIDENCE_WORDS = {"high": "sure", "medium": "likely", "low": "perhaps"}

LOSS = ("after_loss", *GROUPS["loss recovery"])
"""Items of a sender that loss slows down: while it repairs, and until its window is regained."""
INSTANT = ("over in an instant", "no time to be limited in")
SAMPLED = ("not known what limited it", "the capture holds samples of it, not all that was sent")
NOBODYS = ("nobody", "capture")
"""Blames of a limit with which nothing is wrong, or not known to be."""
_GROUPS_BY_CODE = {
    "TW1": ("receiver",),
    "TW2": ("receiver",),
    "TW210": ("receiver", "congestion window", "loss recovery"),
    "TW211": ("receiver", "congestion window", "loss recovery"),
    "TW3": ("loss recovery", "congestion window"),
    "TW305": ("handshake",),
    "TW401": ("idle restart",),
    "TW402": ("application",),
    "TW403": ("send buffer",),
    "TW406": ("congestion window",),
    "TW409": ("congestion window",),
    "TW503": ("handshake",),
    "TW506": ("silent peer",),
    "TW701": ("receiver",),
    "TW702": ("send buffer",),
    "TW703": ("receiver",),
    "TW705": ("idle restart",),
    "TW706": ("receiver",),
}
"""Which groups of the budget a rule's findings are about, by the longest beginning of its code; of others, none."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What limited a connection, and who can change it.

    Attributes:
        blame: sender, receiver, network, application, or nobody where nothing is wrong; capture where it does not tell.
        side: ``a`` or ``b``, at which to change something; None where it is no side.
        direction: ``a_to_b`` or ``b_to_a``: the one with more data; None without data.
        limit: the group of `tcpwin.limits.GROUPS` with most of the sender's time, time after its close left out.
        share: of the connection's duration that this group has, 0 to 1.
        confidence: one of `tcpwin.limits.CONFIDENCES`.
        headline: limit, share and confidence in words: ``limited by a's receive window: 88% of its time (sure)``.
        why: the reason, with numbers.
    """

    blame: str
    side: str | None
    direction: str | None
    limit: str
    share: float
    confidence: str
    headline: str
    why: str

    @property
    def text(self) -> str:
        """All of it in a line."""
        return f"{self.headline}: {self.why}"


@dataclass(frozen=True, slots=True)
class _Opinion:
    """What a group's time means.

    Attributes:
        phrase: the limit in words: ``the path``.
        why: a reason in words.
    """

    phrase: str
    blame: str
    side: str | None
    confidence: str
    why: str


def judge_connection(connection: Connection, findings: Sequence[Finding] = ()) -> Verdict:
    """The verdict on a connection; without findings by its budget alone, which costs nothing."""
    direction = main_direction(connection)
    if connection.sampled:
        return Verdict("capture", None, direction, "unknown", 1.0, "low", *SAMPLED)
    if direction is None:
        return _without_data(connection)
    budget = connection.budget[direction]
    if not budget.total_ns:
        return Verdict("nobody", None, direction, "unknown", 0.0, "low", *INSTANT)
    judge = _Judge(connection, direction, budget)
    return judge.verdict([each for each in findings if each.direction in (None, direction)])


def main_direction(connection: Connection) -> str | None:
    """The direction with more data; where one side was not captured, by what the other acknowledged."""
    sizes = {
        name: max(direction.unique_bytes or 0, direction.acked_bytes or 0)
        for name, direction in (("a_to_b", connection.a_to_b), ("b_to_a", connection.b_to_a))
    }
    largest = max(sizes, key=lambda name: sizes[name])
    return largest if sizes[largest] else None


def _without_data(connection: Connection) -> Verdict:
    if connection.close == "refused":
        why = "b refused it; nothing seems to listen there"
        return Verdict("application", "b", None, "handshake", 1.0, "medium", "carried no data", why)
    if connection.close == "unanswered":
        why = "b never answered; lost on the way, dropped by a firewall, or no such host"
        return Verdict("network", None, None, "handshake", 1.0, "low", "carried no data", why)
    budget = connection.budget["a_to_b"]
    largest = budget.largest if budget.total_ns else "unknown"
    share = budget.share(*GROUPS[largest])
    return Verdict("nobody", None, None, largest, share, "medium", "carried no data", "neither side sent any")


@dataclass(frozen=True, slots=True)
class _Judge:
    """One direction of a connection under judgement."""

    connection: Connection
    name: str
    budget: Budget

    @property
    def sender(self) -> str:
        return "a" if self.name == "a_to_b" else "b"

    @property
    def receiver(self) -> str:
        return "b" if self.name == "a_to_b" else "a"

    @property
    def data(self) -> Direction:
        return self.connection.a_to_b if self.name == "a_to_b" else self.connection.b_to_a

    def verdict(self, findings: Sequence[Finding]) -> Verdict:
        groups = self._groups()
        order = sorted(groups, key=lambda name: -groups[name])
        limit, second = order[0], order[1]
        share = groups[limit] / self.budget.total_ns
        opinion = self._opinion(limit)
        confidence = one_less(opinion.confidence) if self._is_weak(limit) else opinion.confidence
        blame, side, why = opinion.blame, opinion.side, opinion.why
        if share < 0.5 and groups[second]:
            why += f"; next {self._opinion(second).phrase}, {share_text(groups[second] / self.budget.total_ns)}"
        costly = [each for each in findings if each.severity >= Severity.WARNING and each.cost_ns >= MIN_COST_NS]
        about = next((each for each in costly if limit in groups_of(each)), None)
        if about is not None and (blame, side) == (about.blame, about.side):
            confidence = max_confidence(confidence, about.confidence)
        elif about is not None and blame not in NOBODYS:
            blame, side, why = about.blame, about.side, f"{about.text} ({about.code})"
            confidence = min_confidence(max_confidence(confidence, "medium"), about.confidence)
        elif blame in NOBODYS:
            beside = self._beside(groups, limit, costly)
            if beside is not None:
                blame, side, more = beside
                why += f"; {more}"
        confidence = min_confidence(confidence, self._most(limit))
        if self._is_weak(limit):
            # What a rule found, it found in the same packets.
            confidence = min_confidence(confidence, "medium")
        if share < 0.5:
            confidence = min_confidence(confidence, "medium")
        if share - groups[second] / self.budget.total_ns < CLOSE_SHARE:
            confidence = one_less(confidence)
        against = self._against(groups, limit, costly)
        if against is not None:
            (blame, side), more = against
            confidence = "low"
            why += f"; but {more}: they do not agree"
        if self._is_doubled():
            confidence = "low"
            if blame == "network":
                blame, side = "capture", None
            if limit != "unknown":
                why += "; but the capture holds it twice, it seems, and copies look like losses"
        words = CONFIDENCE_WORDS[confidence]
        headline = f"limited by {opinion.phrase}: {share_text(share)} of its time ({words})"
        if limit == "unknown":
            headline = f"not known what limited it for {share_text(share)} of its time"
        return Verdict(blame, side, self.name, limit, share, confidence, headline, why)

    def _groups(self) -> dict[str, int]:
        groups = {name: ns for name, ns in self.budget.groups_ns.items() if name != "closed"}
        data = self.data
        least = data.receive_window_min_bytes
        if least and max(data.unique_bytes or 0, data.acked_bytes or 0) <= least:
            # On loopback the MSS is as large as the window: no second segment fits, and none is needed.
            groups["application"] += groups["receiver"]
            groups["receiver"] = 0
        return groups

    def _beside(
        self, groups: dict[str, int], limit: str, costly: Sequence[Finding]
    ) -> tuple[str, str | None, str] | None:
        """What went wrong in the time that a sender had work, though most of its life nothing was wrong."""
        busy_ns = sum(groups.values()) - groups["application"] - groups["handshake"]
        least_ns = max(MIN_COST_NS, round(MIN_SHARE * busy_ns))
        for finding in costly:
            if finding.cost_ns >= least_ns and groups_of(finding):
                cost = f"{finding.code} {finding.name} cost {time_text(finding.cost_ns)}"
                return finding.blame, finding.side, cost
        items = self.budget.items_ns
        costs = {
            "receiver": groups["receiver"],
            "loss recovery": sum(items[item] for item in LOSS),
            "idle restart": groups["idle restart"],
        }
        worst = max(costs, key=lambda name: costs[name])
        if costs[worst] < least_ns or worst == limit:
            return None
        opinion = self._opinion(worst)
        return opinion.blame, opinion.side, f"{opinion.phrase} cost {time_text(costs[worst])}"

    def _against(
        self, groups: dict[str, int], limit: str, costly: Sequence[Finding]
    ) -> tuple[tuple[str, str | None], str] | None:
        """What was measured otherwise, or found by a rule, and has no place in the budget."""
        least_ns = max(groups[limit] // 2, MIN_COST_NS)
        apart_ns = round(DISAGREEING_SHARE * self.budget.total_ns)
        window_ns = self.data.window_cost_ns
        if limit == "receiver" or self.budget.kernel is not None:
            window_ns = 0
        if window_ns >= least_ns and window_ns > groups["receiver"] + apart_ns:
            opinion = self._window()
            told = f"{self.receiver}'s receive window cost {time_text(window_ns)}"
            return (opinion.blame, opinion.side), told
        for finding in (each for each in costly if limit not in groups_of(each)):
            known_ns = sum(groups[name] for name in groups_of(finding))
            if groups_of(finding) and finding.cost_ns >= least_ns and finding.cost_ns > known_ns + apart_ns:
                cost = f"{finding.code} {finding.name} found {time_text(finding.cost_ns)}"
                return (finding.blame, finding.side), cost
        return None

    def _is_doubled(self) -> bool:
        """Whether both SYNs and much of the data are there again: what TW610 makes sure of."""
        both = (self.connection.a_to_b, self.connection.b_to_a)
        return all(each.syn_retransmissions for each in both) and (
            self.data.data_segments >= DOUBLED_SEGMENTS
            and self.data.retransmissions >= DOUBLED_SHARE * self.data.data_segments
        )

    def _is_weak(self, limit: str) -> bool:
        """Whether the capture is not whole, or packets and kernel differ."""
        capture = self.connection._analysis.capture
        missed = self.data.missed_bytes > MISSED_SHARE * max(self.data.acked_bytes, 1)
        apart = self.budget.disagreement
        differs = apart is not None and apart > DISAGREEING_SHARE and limit in ("receiver", "congestion window", "path")
        return missed or bool(capture.interface_drops) or differs

    def _most(self, limit: str) -> str:
        """How sure a limit can be without the scale of the windows: of one that is inferred no more than suspected."""
        if self.data.window_scale.state not in ("unknown", "syn_only") or self.budget.kernel is not None:
            return "high"
        items = self.budget.items_ns
        if limit == "receiver":
            # A closed window is closed at every scale.
            return "high" if items["zero_window"] * 2 >= sum(items[item] for item in GROUPS["receiver"]) else "low"
        return "medium"

    def _seen(self) -> str:
        """How sure what a sender waited for is, by where the capture was made."""
        return "high" if self.data.view == "sender" else "medium"

    def _opinion(self, group: str) -> _Opinion:
        if group == "receiver":
            return self._window()
        if group == "congestion window":
            return self._congestion()
        if group == "loss recovery":
            return _Opinion("loss recovery", "network", None, self._seen(), self._loss())
        if group == "silent peer":
            why = f"{self.receiver} answered nothing for {time_text(self.budget.items_ns['peer_silent'])}, to the end"
            return _Opinion(f"{self.receiver}'s silence", "network", self.receiver, self._seen(), why)
        if group == "idle restart":
            why = f"after a pause {self.sender} began again with a smaller congestion window"
            return _Opinion("restarts after pauses", "sender", self.sender, self._seen(), why)
        if group == "application":
            waits = f"{self.sender} had nothing to send for {time_text(self.budget.items_ns['application'])}"
            why = f"{waits} in all, between its answers" if self.data.turns > 1 else waits
            return _Opinion("the applications' own pace", "nobody", None, self._seen(), why)
        if group == "send buffer":
            why = f"{self.sender}'s flight stayed the same, below every other limit"
            confidence = "low" if self.budget.kernel is None else "high"
            return _Opinion(f"{self.sender}'s send buffer", "sender", self.sender, confidence, why)
        if group == "path":
            rate = "" if self.data.goodput_bps is None else f", {rate_text(self.data.goodput_bps)}"
            return _Opinion("the path", "nobody", None, "medium", f"data went evenly at the best rate seen{rate}")
        if group == "handshake":
            return self._handshake()
        return _Opinion("what was not captured", "capture", None, "low", self._unknown())

    def _window(self) -> _Opinion:
        """A window that closes, or stands far below its largest, fits a reader that is slow; else it is small."""
        data, receiver = self.data, self.receiver
        items, phrase = self.budget.items_ns, f"{self.receiver}'s receive window"
        most, mean = data.receive_window_max_bytes, data.receive_window_mean_bytes
        by_kernel = "" if self.budget.kernel is None else f"; the share is the count of {self.sender}'s kernel"
        sure = "high" if by_kernel else self._seen()
        if data.zero_window_episode_count and data.zero_window_ns >= MIN_SHARE * data.window_cost_ns:
            closed = (
                f"{receiver} closed it {count_text(data.zero_window_episode_count, 'time')} "
                f"for {time_text(data.zero_window_ns)} in all"
            )
            if items["zero_window"] * 2 >= sum(items[item] for item in GROUPS["receiver"]):
                sure = "high"
            why = f"{closed}; its application reads too slowly{by_kernel}"
            return _Opinion(phrase, "application", receiver, sure, why)
        if data.window_scale.state == "disabled":
            by = "b" if data.window_scale.disabled_by == "b" else "a"
            why = f"65.5 kB at most, for want of the window scale option in the SYN of {by}{by_kernel}"
            return _Opinion(phrase, "sender" if by == self.sender else "receiver", by, sure, why)
        if most and mean is not None and mean < most / 2:
            sizes = f"{bytes_text(mean)} on average, of {bytes_text(most)} at most"
            why = f"{sizes}: a slow reader on {receiver} fits{by_kernel}"
            return _Opinion(phrase, "application", receiver, min_confidence(sure, "medium"), why)
        if most is None:
            why = "what is in flight ends again and again at the edge that the least possible window scale gives it"
            return _Opinion(phrase, "receiver", receiver, "low", why)
        round_trip_ns = self.connection.path_rtt_ns
        why = f"{bytes_text(most)} at most"
        if round_trip_ns:
            why += f", which over {time_text(round_trip_ns)} allows {rate_text(most * 8e9 / round_trip_ns)}"
        return _Opinion(phrase, "receiver", receiver, sure, f"{why}{by_kernel}")

    def _congestion(self) -> _Opinion:
        items = {item: self.budget.items_ns[item] for item in GROUPS["congestion window"]}
        largest = max(items, key=lambda item: items[item])
        phrase = f"{self.sender}'s congestion window"
        if largest == "slow_start":
            return _Opinion(f"{phrase}, still growing", "nobody", None, "medium", "the transfer's start, as designed")
        if largest == "after_loss":
            return _Opinion(f"{phrase}, cut by losses", "network", None, "medium", self._loss())
        return _Opinion(phrase, "nobody", None, "medium", "no other limit shows")

    def _loss(self) -> str:
        data = self.data
        again = f"{count_text(data.resent_segments, 'segment')} of {data.data_segments:,} sent again"
        return again + (f", {data.rto_retransmissions:,} by timeout" if data.rto_retransmissions else "")

    def _handshake(self) -> _Opinion:
        again = self.connection.a_to_b.syn_retransmissions + self.connection.b_to_a.syn_retransmissions
        if again:
            why = f"{count_text(again, 'segment')} of it sent again"
            return _Opinion("the handshake", "network", None, "medium", why)
        return _Opinion("the handshake", "nobody", None, "high", "little else was to be done")

    def _unknown(self) -> str:
        if self._is_doubled():
            return "the capture holds it twice, as it left one end and as it came to the other"
        stepped_ns = self.data.clock_step_ns
        if stepped_ns * 2 > self.budget.items_ns["unknown"]:
            return f"the capture's clock went {time_text(stepped_ns)} further than the timestamps of its packets"
        if self.data.window_scale.state in ("unknown", "syn_only"):
            if self.data.syn_seen:
                return "the capture lacks a SYN, and with it the scale of the windows"
            return "the capture lacks the SYNs, and with them the scale of the windows"
        if self.data.flight_max_bytes is None:
            return "one side of the connection was not captured"
        return "the capture does not show it"


def groups_of(finding: Finding) -> tuple[str, ...]:
    """The groups of the budget that a finding is about; none where it is about no sender's time."""
    code = finding.code
    return next((_GROUPS_BY_CODE[code[:end]] for end in (5, 3) if code[:end] in _GROUPS_BY_CODE), ())


def one_less(confidence: str) -> str:
    """The next lower confidence."""
    return CONFIDENCES[max(CONFIDENCES.index(confidence) - 1, 0)]


def min_confidence(one: str, other: str) -> str:
    """The lower of two."""
    return min(one, other, key=CONFIDENCES.index)


def max_confidence(one: str, other: str) -> str:
    """The higher of two."""
    return max(one, other, key=CONFIDENCES.index)
