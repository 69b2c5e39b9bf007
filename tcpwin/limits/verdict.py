"""What limited a connection, what that cost, and who can change it: the one judge, whom everything else asks.

In: a connection with its time budgets, and what rules found of it. Out: Verdict. It reads no packets. Findings say more
exactly which limit the time that they claim is of, and who can change it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tcpwin.analysis import DirectionName, cached
from tcpwin.limits.budget import Budget
from tcpwin.limits.claims import claimed_limit
from tcpwin.limits.connection import Connection
from tcpwin.limits.division import (
    GROUPS_WEIGHED,
    MIN_COST_NS,
    NONE,
    ORDER,
    Division,
    Loss,
    Lossy,
    by_limit,
    divide,
    lose,
    pick_one,
    weigh,
    worse,
)
from tcpwin.limits.finding import Evidence, Finding, Severity
from tcpwin.limits.gains import Gain, part_of
from tcpwin.limits.opinion import Opinion, Situation, opinion_of
from tcpwin.limits.roles import main_direction
from tcpwin.limits.tables import CONFIDENCES, ITEM_LIMITS, LIMIT_NAMES, MENDABLE, WINDOW_ITEMS
from tcpwin.units import rest_text, share_text, time_text

if TYPE_CHECKING:
    # Only a pairing has one.
    from tcpwin.limits.crossing import Crossing

DISAGREEING_SHARE = 0.1
"""Of the duration: packets and kernel further apart than this do not agree."""
MAY_BE_LOST = GROUPS_WEIGHED[0] + GROUPS_WEIGHED[2]
"""Places of the items of which `weigh` finds time lost."""
_Lossy = TypeVar("_Lossy", bound=Lossy)
UNNAMED = {"none": "Nothing limited it", "capture": "Not known what limited it for {share} of the time"}
"""Limits that are none, in words."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What limited a connection, or a direction of it.

    Attributes:
        limit: one of `tcpwin.limits.LIMITS`: the one with most of the direction's life.
        second_limit: another of like size; None where there is none.
        share: of the connection's duration that the limit has, 0 to 1.
        cost_ns: by how much sooner it would have ended with the limit alone lifted, by `tcpwin.limits.gains`;
            `cost_low_ns` and `cost_high_ns` bound it, from 0 where the limit is only possible.
        confidence: one of `tcpwin.limits.CONFIDENCES`.
        owner: who can change it: one of `tcpwin.limits.OWNERS`; nobody where nothing is wrong.
        side: ``client`` or ``server``: the end at which to change something; None where it is no end.
        direction: ``a_to_b`` or ``b_to_a``: whose data was limited; None without data.
        fix: what to change; None where there is nothing to change.
        text: the answer in a line.
        headline: its first sentence, limit, share and confidence.
        named: the limit as `headline` has it, with share and confidence: ``the client's receive window (89 % of the
            time, likely)``.
        answer: `text` without what it says of the limit beside.
        beside_text: that: a sentence on `also` with its time; empty where `answer` names it, or nothing is beside.
        cost_text: what the limit that the fix is about cost, of how long; empty where `beside_text` says it, or there
            is no problem.
        time_ns: time in the limit that the fix is about, which the evidence is of; `cost_ns` is what of it lifting
            the limit would have gained.
        reason: why, with numbers.
        code: of the finding that tells what to fix; None where the time budget alone says it.
        rule: the name of that finding's rule.
        frames: numbers of frames that show it; `frames_of` says which of how many.
        when_text: when it happened, after the connection's beginning; empty where no finding says so.
        lost_ns: time lost to limits that somebody can mend, whatever the largest limit is.
        lost_share: of the time in which the sender had work, 0 to 1.
        also: the largest limit of that time, where `limit` is none that can be mended; None without any that matters.
        also_ns: what it cost.
        is_problem: so much was lost that somebody should look: `MIN_COST_NS` and `MIN_SHARE`, or it stalls for good.
    """

    limit: str
    second_limit: str | None
    share: float
    cost_ns: int
    cost_low_ns: int
    cost_high_ns: int
    confidence: str
    owner: str
    side: str | None
    direction: DirectionName | None
    fix: str | None
    text: str
    headline: str
    reason: str
    named: str = ""
    answer: str = ""
    beside_text: str = ""
    cost_text: str = ""
    time_ns: int = 0
    frames_of: str = ""
    when_text: str = ""
    code: str | None = None
    rule: str | None = None
    frames: tuple[int, ...] = ()
    lost_ns: int = 0
    lost_share: float = 0.0
    also: str | None = None
    also_ns: int = 0
    is_problem: bool = False

    @property
    def limited_by(self) -> str:
        """The same as `named`, in a sentence."""
        return f"{self.named[:1].lower()}{self.named[1:]}" if self.limit in UNNAMED else f"limited by {self.named}"

    @property
    def beside(self) -> str | None:
        """The name of the limit that cost and fix are about, where it is not the one told first."""
        return None if self.also is None else LIMIT_NAMES[self.also]

    @property
    def named_ns(self) -> int:
        """What the limit that the fix is about cost: the one told first, or the one told beside it."""
        if self.also is not None:
            return self.also_ns
        return self.cost_ns if self.limit in MENDABLE else self.lost_ns


class Weighed(NamedTuple):
    """What a connection, or a direction of it, lost.

    Attributes:
        lost_ns, is_problem: as `Verdict` has them.
        judge: of the direction whose loss it is; None where it lost nothing.
    """

    lost_ns: int
    is_problem: bool
    judge: _Judge | None

    @property
    def limit(self) -> str | None:
        """The one that the fix is about, the first or the one beside it; None where there is no problem."""
        if not self.is_problem or self.judge is None:
            return None
        divided = self.judge.divided
        place: int = divided.first if divided.also == NONE else divided.also
        return ORDER[place]


def judge_connection(connection: Connection, findings: Sequence[Finding] = ()) -> Verdict:
    """The verdict on a connection: that of the direction that lost most, else of the one with more data."""
    return choose_direction(connection, judge_directions(connection, findings))


def judge_directions(
    connection: Connection, findings: Sequence[Finding] = (), crossings: Mapping[DirectionName, Crossing] | None = None
) -> dict[DirectionName, Verdict]:
    """The verdicts on both directions; without findings by the time budgets alone, which costs little.

    Args:
        crossings: what the capture of the other end proves besides, by direction.
    """
    found = _by_direction(connection, findings)
    both = crossings or {}
    return {name: judge_worded(connection, name, own, both.get(name))[0] for name, own in found.items()}


def division_of(connection: Connection, name: DirectionName, findings: Sequence[Finding]) -> tuple[Situation, Division]:
    """A direction, and its life as its verdict divides it."""
    judge = _Judge(Situation(connection, name, connection.budget[name]), _by_direction(connection, findings)[name])
    return judge.seen, judge.divided


def choose_direction(connection: Connection, verdicts: Mapping[DirectionName, _Lossy]) -> _Lossy:
    """The connection's verdict of those of its directions; the same of what their losses are."""
    is_back_main = main_direction(connection) == "b_to_a"
    there, back = verdicts["a_to_b"], verdicts["b_to_a"]
    return back if worse(there, back, is_back_main, pick_one) else there


def weigh_connection(connection: Connection, findings: Sequence[Finding] = ()) -> Weighed:
    """What `judge_connection` would say of the loss, without the words, which cost most."""
    found = _by_direction(connection, findings)
    return choose_direction(connection, {name: _weigh(connection, name, own) for name, own in found.items()})


def _by_direction(connection: Connection, findings: Sequence[Finding]) -> dict[DirectionName, list[Finding]]:
    """Findings by the direction that they are of: those of both, of the one with more data."""
    found: dict[DirectionName, list[Finding]] = {"a_to_b": [], "b_to_a": []}
    for each in findings:
        found[each.direction or main_direction(connection) or "a_to_b"].append(each)
    return found


def _weigh(connection: Connection, name: DirectionName, findings: Sequence[Finding]) -> Weighed:
    budget = connection.budget[name]
    if any(each.items_ns for each in findings):
        judge = _Judge(Situation(connection, name, budget), findings)
        return Weighed(*judge.loss, judge)
    items_ns = tuple(budget.items_ns.values())
    if not any(items_ns[place] for place in MAY_BE_LOST):
        return Weighed(0, False, None)
    sums_ns = [sum([items_ns[place] for place in group]) for group in GROUPS_WEIGHED]
    seen = Situation(connection, name, budget)
    loss = weigh(sums_ns, **doubts_of(seen))
    return Weighed(*loss, _Judge(seen, findings) if loss.is_problem else None)


def doubts_of(seen: Situation) -> dict[str, bool]:
    """What the judge's division asks beside times."""
    return {
        "is_disturbed": seen.is_handshake_disturbed,
        "is_stalled": seen.is_stalled,
        "is_sampled": seen.connection.sampled,
    }


def judge_worded(
    connection: Connection, name: DirectionName, findings: Sequence[Finding] = (), crossing: Crossing | None = None
) -> tuple[Verdict, str]:
    """The verdict on a direction, and its text with its numbers left open, those of `numbers_text`."""
    budget = connection.budget[name]
    if not budget.total_ns:
        text = "Too short to judge."
        why = "it is over with its first packet"
        direction = name if main_direction(connection) else None
        none = Verdict(
            *("none", None, 0.0, 0, 0, 0, "certain", "nobody", None, direction, None, text, text[:-1], why),
            named=text[:-1],
            answer=text,
        )
        return none, text
    if crossing is not None:
        budget = crossing.corrected(budget)
    return _Judge(Situation(connection, name, budget), findings, crossing).verdict()


@dataclass
class _Judge:
    """One direction under judgement.

    Attributes:
        crossing: what the capture of the other end proves; None without one.
        claimed: of each limit's time, what each finding claims.
    """

    seen: Situation
    findings: Sequence[Finding]
    crossing: Crossing | None = None
    claimed: dict[str, list[tuple[int, Finding]]] = field(default_factory=lambda: defaultdict(list))
    _left: dict[str, int] = field(init=False)
    _times: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _mended: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def __post_init__(self) -> None:
        left = self._left = {item: ns for item, ns in self.seen.budget.items_ns.items() if ns}
        times, mended = self._times, self._mended
        for finding in self.findings:
            by_claim: dict[str, int] = defaultdict(int)
            for item, claimed_ns in finding.items_ns.items():
                # Of what the other end's capture takes from an item nothing can be claimed.
                ns = min(claimed_ns, left.get(item, 0))
                limit = claimed_limit(finding, item)
                shown = self._shown_limit(item, limit)
                left[item] = left.get(item, 0) - ns
                if shown == limit:
                    by_claim[limit] += ns
                else:
                    times[shown] += ns
                    mended[shown] += self._mended_ns(ns)
            for limit, ns in by_claim.items():
                times[limit] += ns
                self.claimed[limit].append((ns, finding))
                if limit not in MENDABLE and finding.owner != "nobody" and finding.severity >= Severity.WARNING:
                    mended[limit] += ns
        for item, ns in tuple(left.items()) if self.crossing is not None else ():
            shown = self._shown_limit(item, ITEM_LIMITS[item])
            if shown != ITEM_LIMITS[item]:
                times[shown] += left.pop(item)
                mended[shown] += self._mended_ns(ns)

    @cached
    def divided(self) -> Division:
        """The direction's life."""
        return divide(self._times_ns(is_slow=self.seen.is_slow), self._mended, **doubts_of(self.seen), pick=pick_one)

    @property
    def loss(self) -> Loss:
        """What `divided` says of it. Whichever of its two limits a window's time is of, somebody can lift it."""
        return lose(self._times_ns(is_slow=False), self._mended, **doubts_of(self.seen))

    def _times_ns(self, *, is_slow: bool) -> dict[str, int]:
        times = dict(self._times)
        for limit, ns in by_limit(self._left, is_slow, pick_one).items():
            times[limit] = times.get(limit, 0) + ns
        return times

    def _shown_limit(self, item: str, limit: str) -> str:
        """The limit that an item's time is of, which the capture of the other end may show to be another."""
        return limit if self.crossing is None else self.crossing.limit_of(item, limit)

    def _mended_ns(self, ns: int) -> int:
        """Of time in another limit than one capture shows, what somebody can mend: all, where nothing was lost."""
        return ns if self.crossing is not None and self.crossing.is_without_loss else 0

    @property
    def budget(self) -> Budget:
        return self.seen.budget

    def verdict(self) -> tuple[Verdict, str]:
        divided = self.divided
        limit, share = ORDER[divided.first], divided.first_ns / divided.total_ns
        second = None if divided.second == NONE else ORDER[divided.second]
        opinion, about = self._informed(limit)
        confidence, reason = opinion.confidence, opinion.reason
        if self._is_weak(limit) or share < 0.5:
            # What a rule found, it found in the same packets.
            confidence = min_confidence(confidence, "likely")
        if self._is_weak(limit) or second is not None:
            confidence = min_confidence(confidence, one_less(opinion.confidence))
        confidence = min_confidence(confidence, self._most(limit))
        owner, side = opinion.owner, opinion.side
        if limit == "path_loss" and owner == "network":
            # The losses are read off the packets; that no policer and no other's queue caused them is judged.
            confidence = min_confidence(confidence, "likely")
        if self.seen.is_doubled:
            confidence = "possible"
            if owner == "network":
                owner, side = "nobody", None
            if limit != "capture":
                reason += "; but the capture seems to hold each packet twice, and the copies look like losses"
        if limit == "sender_application" and self.seen.connection.multipath:
            confidence = "possible"
            reason += "; but other subflows of Multipath TCP may have carried the data"
        also = None if divided.also == NONE else ORDER[divided.also]
        also_time_ns = divided.lost_to_ns[divided.also] if also is not None else 0
        also_ns = 0
        if also_time_ns:
            gained_ns = self.seen.gain(divided.also, divided.times_ns).likely_ns
            also_ns = part_of(gained_ns, also_time_ns, divided.times_ns[divided.also])
        fix = opinion.fix
        named = self._named(limit, opinion, confidence, second)
        headline = self._headline(limit, named, second)
        answer, beside_text = " ".join(filter(None, (headline, opinion.meaning))), ""
        if also is not None:
            beside, finding = self._informed(also)
            fix, about = beside.fix, finding
            if also != second:
                beside_text = f"What can be fixed: {beside.phrase} cost {{also}} ({{also_share}} of the connection)."
        text = " ".join(filter(None, (answer, beside_text)))
        gain = self.seen.gain(divided.first, divided.times_ns)
        low_ns, high_ns = self._bounds(limit, gain)
        low_ns = 0 if confidence == "possible" else low_ns
        answer_ns = self.seen.data.first_byte_p50_ns or 0
        numbers = numbers_text(
            share, divided.second_ns / divided.total_ns, also_ns, also_ns / divided.total_ns, answer_ns
        )
        cost_text = ""
        if divided.is_problem and not beside_text:
            bounds = (gain.likely_ns, low_ns, high_ns) if also is None and limit in MENDABLE else None
            cost_text = _cost_text(also_ns or divided.lost_ns, divided.total_ns, bounds, is_one=second is None)
        verdict = Verdict(
            limit=limit,
            second_limit=second,
            share=share,
            cost_ns=gain.likely_ns,
            cost_low_ns=low_ns,
            cost_high_ns=high_ns,
            confidence=confidence,
            owner=owner,
            side=side,
            direction=self.seen.name if main_direction(self.seen.connection) else None,
            fix=fix,
            text=text.format(**numbers),
            headline=headline.removesuffix(".").format(**numbers),
            reason=reason,
            named=named.format(**numbers),
            answer=answer.format(**numbers),
            beside_text=beside_text.format(**numbers),
            cost_text=cost_text,
            time_ns=divided.first_ns if also is None else also_time_ns,
            code=None if about is None else about.code,
            rule=None if about is None else about.name,
            frames=() if about is None else about.evidence.frames,
            frames_of="" if about is None else about.evidence.frames_of or "",
            when_text=""
            if about is None
            else _when_text(about.evidence, self.seen.connection.start_ns, also_ns or divided.times_ns[divided.first]),
            lost_ns=divided.lost_ns,
            lost_share=divided.lost_ns / divided.busy_ns if divided.busy_ns else 0.0,
            also=also,
            also_ns=also_ns,
            is_problem=divided.is_problem,
        )
        return verdict, text

    def _named(self, limit: str, opinion: Opinion, confidence: str, second: str | None) -> str:
        if limit in UNNAMED:
            return UNNAMED[limit]
        named = f"{opinion.phrase} ({{share}} of the time, {confidence})"
        return named if second is None else f"{named} and {opinion_of(self.seen, second).phrase} ({{second}})"

    def _headline(self, limit: str, named: str, second: str | None) -> str:
        """One sentence that is true: what is no problem begins with that."""
        if limit in UNNAMED:
            return f"{named}."
        if self.divided.is_problem or self.seen.connection.sampled:
            return f"Limited by {named}."
        fine = "Nothing to fix"
        if limit in MENDABLE or second in MENDABLE:
            fine = "Too little time lost to be a problem"
        elif limit == "sender_application" and self.seen.traits.is_answering:
            # The application may well have something to fix.
            fine = "Nothing to fix in TCP"
        return f"{fine}: limited by {named}."

    def _informed(self, limit: str) -> tuple[Opinion, Finding | None]:
        """What the limit means, with what a finding and the other end's capture say of it."""
        opinion, about = self._told(limit)
        if self.crossing is not None:
            opinion = self.crossing.opinion(self.seen, limit, opinion)
        return opinion, about

    def _told(self, limit: str) -> tuple[Opinion, Finding | None]:
        """What the limit means, with what the finding says that claims most of its time."""
        opinion = opinion_of(self.seen, limit)
        telling = [
            (ns, each)
            for ns, each in self.claimed[limit]
            if each.severity >= Severity.WARNING and each.cost_ns >= MIN_COST_NS
        ]
        if not telling:
            return self._shown(limit, opinion)
        about = max(telling, key=lambda claim: claim[0])[1]
        fix = opinion.fix if about.remedy is None else about.remedy.text
        owner, side = about.owner, about.side
        if owner in ("application", "host"):
            owner, side = opinion.owner, opinion.side
        if owner == opinion.owner:
            confidence = max_confidence(opinion.confidence, about.confidence)
            return opinion.restated(owner, side, confidence, opinion.reason, fix), about
        confidence = min_confidence(max_confidence(opinion.confidence, "likely"), about.confidence)
        return opinion.restated(owner, side, confidence, about.text, fix), about

    def _shown(self, limit: str, opinion: Opinion) -> tuple[Opinion, Finding | None]:
        """With a finding that costs too little to judge by, but shows most of the limit's time, and what to do."""
        own = [(ns, each) for ns, each in self.claimed[limit] if each.severity >= Severity.WARNING]
        if limit not in MENDABLE or not own:
            return opinion, None
        ns, about = max(own, key=lambda claim: claim[0])
        if about.owner != opinion.owner or ns * 2 < self.divided.times_ns[ORDER.index(limit)]:
            return opinion, None
        fix = opinion.fix if about.remedy is None else about.remedy.text
        return opinion.restated(opinion.owner, opinion.side, opinion.confidence, opinion.reason, fix), about

    def _bounds(self, limit: str, gain: Gain) -> tuple[int, int]:
        """What the model allows, and packets and kernel where they differ about the limit's time."""
        items = [item for item, own in ITEM_LIMITS.items() if own == limit]
        if limit in ("receiver_window", "receiver_application"):
            items = list(WINDOW_ITEMS)
        apart_ns = sum(self.budget.packets_ns[item] - self.budget.items_ns[item] for item in items)
        other_ns = min(max(gain.high_ns + apart_ns, 0), self.budget.total_ns)
        return min(gain.low_ns, other_ns), max(gain.high_ns, other_ns)

    def _is_weak(self, limit: str) -> bool:
        """Whether the capture is not whole, or packets and kernel differ."""
        capture = self.seen.connection._analysis.capture
        apart = self.budget.disagreement
        disputed = ("receiver_window", "receiver_application", "congestion_control", "path_loss", "path_rate")
        differs = apart is not None and apart > DISAGREEING_SHARE and limit in disputed
        return bool(self.seen.traits.is_missed or capture.interface_drops or differs)

    def _most(self, limit: str) -> str:
        """How sure a limit can be without the scale of the windows: of one that is inferred no more than possible."""
        if self.seen.data.window_scale.state not in ("unknown", "syn_only") or self.budget.kernel is not None:
            return "certain"
        if limit in ("receiver_window", "receiver_application"):
            # A closed window is closed at every scale.
            return "certain" if self.seen.traits.is_mostly_closed else "possible"
        return "certain" if limit in ("handshake", "none", "capture") else "likely"


def numbers_text(share: float, second_share: float, also_ns: int, also_share: float, answer_ns: int) -> dict[str, str]:
    """The numbers that a verdict's text leaves open."""
    return {
        "share": share_text(share),
        "second": share_text(second_share),
        "also": time_text(also_ns),
        "also_share": share_text(also_share),
        "answer": time_text(answer_ns),
    }


def _when_text(evidence: Evidence, connection_ns: int, spent_ns: int) -> str:
    """``from 1.9 s to 6.04 s of the connection``; nothing where the times are those of one time of many.

    Mostly then, where the limit's whole time is longer: some of it lies outside of what a rule found.
    """
    if evidence.start_ns is None or evidence.span_of:
        return ""
    start, end = (
        time_text(max(ns - connection_ns, 0)) for ns in (evidence.start_ns, evidence.end_ns or evidence.start_ns)
    )
    if start == end:
        return f"at {start} of the connection"
    mostly = "mostly " if (evidence.end_ns or evidence.start_ns) - evidence.start_ns < spent_ns else ""
    return f"{mostly}from {start} to {end} of the connection"


def _cost_text(lost_ns: int, total_ns: int, bounds: tuple[int, int, int] | None, *, is_one: bool) -> str:
    """A cost with what it is a part of; with bounds, those of what lifting the limit would have gained."""
    total = time_text(total_ns)
    if bounds is None:
        return f"about {time_text(lost_ns)} of {total}"
    likely, low, high = map(time_text, bounds)
    about, rest = f"about {likely}", rest_text(total_ns, bounds[0])
    if low != likely != high and bounds[1]:
        about += f" ({low} to {high})"
    elif high != likely:
        about += f" (at most {high})"
    elif not bounds[1]:
        about, rest = f"up to {likely}", f"as little as {rest}"
    elif low != likely:
        about += f" (at least {low})"
    if bounds[0] >= total_ns:
        return f"{about}, all of {total}"
    which = "this limit" if is_one else "the first limit"
    return f"{about}: without {which} it would have taken {rest} instead of {total}"


def one_less(confidence: str) -> str:
    """The next lower confidence."""
    return CONFIDENCES[max(CONFIDENCES.index(confidence) - 1, 0)]


def min_confidence(one: str, other: str) -> str:
    """The lower of two."""
    return min(one, other, key=CONFIDENCES.index)


def max_confidence(one: str, other: str) -> str:
    """The higher of two."""
    return max(one, other, key=CONFIDENCES.index)
