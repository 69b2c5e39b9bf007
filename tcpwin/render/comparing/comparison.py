"""A comparison of two captures as text: the verdict, the pairs that changed most, and the unmatched connections."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from tcpwin.limits import Analysis, Change, Comparison, Connection, FindingChange, Pair, advice_label, role_of
from tcpwin.paths import Effect
from tcpwin.render.view.finding import arrow_of
from tcpwin.render.view.verdict import VerdictView, view_verdict
from tcpwin.units import bytes_text, change_text, count_text, name_text, rate_text, share_text, time_text

NAMES = {
    "goodput_bps": "goodput",
    "message_delay_p95_ns": "message delay, p95",
    "volume_bytes": "payload",
    "duration_ns": "duration",
    "path_rtt_ns": "round trip",
    "receive_window_max_bytes": "receiver's largest window",
    "retransmissions": "retransmissions",
    "resent_share": "bytes retransmitted",
    "stall_ns": "silences",
    "zero_window_ns": "receiver's window at zero",
    "lost_ns": "time in limits you can fix",
}
"""Names of the compared quantities."""
WIDTH = 26
"""Width of a quantity's name, in characters."""
_TEXTS: dict[str, Callable[[Any], str]] = {"ns": time_text, "bytes": bytes_text, "bps": rate_text}
SHOWN_UNMATCHED = 5
MESSAGES = 20
"""Minimum number of messages for showing a 95th percentile: with fewer, it is a single message."""
LIKE_VOLUME = 0.01
"""Maximum relative difference of payloads whose durations are compared: beyond it, durations reflect the payloads."""
SAME = 0.005
"""Maximum relative difference of factors that are shown as equal."""


def render_comparison(
    old: Analysis, new: Analysis, comparison: Comparison, *, limit: int = 10, effect: Effect | None = None
) -> Iterator[str]:
    """Render a comparison with the `limit` pairs that changed most, and the effect of a change."""
    yield name_text(f"old  {old.name}: {count_text(len(old), 'connection')}")
    yield name_text(f"new  {new.name}: {count_text(len(new), 'connection')}")
    yield ""
    yield headline(comparison)
    if effect is not None:
        at = "" if len(comparison.pairs) == 1 else f" (old #{effect.old_connection}, new #{effect.new_connection})"
        yield f"Change{at}: {effect.text}"
        yield from (f"    But {doubt}." for doubt in effect.doubts)
    if comparison.path_changes and effect is None:
        yield (
            f"The path's round trip differs in {count_text(comparison.path_changes, 'pair')}: "
            "the path may explain part of the difference."
        )
    # A capture in a bundle has no name that `tcpwin pair` could read.
    if seen_twice(old, new, comparison) and not any(": " in each.name for each in (old, new)):
        yield name_text(
            "Both captures hold the same connection at the same time: "
            f"`{shlex.join(('tcpwin', 'pair', old.name, new.name))}` shows what happened to its packets "
            "between the two points."
        )
    for each in islice(comparison.pairs, limit):
        yield ""
        yield from _pair(each, old.connections[each.match.old], new.connections[each.match.new])
    matched = sum(comparison.counts.values())
    shown = min(limit, len(comparison.pairs))
    if matched > shown:
        yield ""
        yield f"{count_text(matched - shown, 'more pair')} not shown: --limit N shows more."
    is_said = len(comparison.pairs) == 1 and limit and len(comparison.findings) == len(comparison.pairs[0].findings)
    if comparison.findings and not is_said:
        yield ""
        yield "Findings of all connections"
        yield from (f"    {_finding(each)}" for each in comparison.findings)
    unmatched = [
        *_unmatched("old", old, comparison.unmatched_old, comparison.unmatched_old_count),
        *_unmatched("new", new, comparison.unmatched_new, comparison.unmatched_new_count),
    ]
    if unmatched:
        yield from ("", "Without a match", *unmatched)


def seen_twice(old: Analysis, new: Analysis, comparison: Comparison) -> bool:
    """Return true if a pair is one connection captured twice, rather than one before and one after a change.

    Same ends, same bytes, at the same time.
    """
    for each in comparison.pairs:
        one, other = old.connections[each.match.old], new.connections[each.match.new]
        alike = [(at.a, at.b, at.a_to_b.unique_bytes, at.b_to_a.unique_bytes) for at in (one, other)]
        if alike[0] == alike[1] and max(one.start_ns, other.start_ns) <= min(one.end_ns, other.end_ns):
            return True
    return False


def headline(comparison: Comparison) -> str:
    """Return the verdict of the comparison as one sentence."""
    matched = sum(comparison.counts.values())
    if not matched:
        return "Unmatched: no connection is in both captures."
    ratio = "" if comparison.goodput_ratio is None else f"goodput × {comparison.goodput_ratio:.3g}"
    parts = []
    if matched == 1 and comparison.pairs and (decided := decided_by(comparison.pairs[0])):
        parts.append(decided)
        # A factor this close to 1 adds nothing to the reason for the verdict.
        ratio = "" if abs((comparison.goodput_ratio or 1) - 1) < SAME else ratio
    if matched > 1:
        counts = ", ".join(f"{count} {name}" for name, count in comparison.counts.items() if count)
        parts.append(f"{count_text(matched, 'pair')}, {counts}")
        ratio = ratio and f"median {ratio}"
    elif ratio and comparison.pairs:
        ratio += _duration_words(comparison.pairs[0])
    verdict = f"{comparison.verdict[:1].upper()}{comparison.verdict[1:]}"
    return ": ".join(filter(None, (verdict, "; ".join(filter(None, (*parts, ratio)))))) + "."


def decided_by(each: Pair) -> str:
    """Return the quantity that made a pair better or worse; empty if it was the goodput."""
    sides = ("better", "worse") if each.verdict == "mixed" else (each.verdict,)
    if each.verdict == "same" or each.change("goodput_bps").verdict in sides:
        return ""
    changes = [change for change in each.changes if change.verdict in sides]
    if not changes:
        codes = dict.fromkeys(
            f"{found.kind} {found.code} {found.name}" for found in each.findings if found.verdict in sides
        )
        return ", ".join(codes)
    return ", ".join(
        f"{NAMES[change.name]} {value_text(change.name, change.old)} → {value_text(change.name, change.new)}"
        for change in changes
    )


def _duration_words(each: Pair) -> str:
    """Compare the durations of equal payloads; empty if they changed by the same factor as the goodput."""
    took, goodput, volume = (each.change(name) for name in ("duration_ns", "goodput_bps", "volume_bytes"))
    if not (took.old and took.new and goodput.old and goodput.new and volume.old and volume.new):
        return ""
    factor = took.old / took.new
    if abs(volume.new / volume.old - 1) > LIKE_VOLUME:
        return ""
    if abs(factor - 1) < SAME or abs(factor * goodput.old / goodput.new - 1) < SAME:
        return ""
    durations = f"{time_text(took.old)} → {time_text(took.new)} ({change_text(1 / factor)})"
    return f" between first data and last ACK; whole duration {durations}"


def _pair(each: Pair, old: Connection, new: Connection) -> Iterator[str]:
    match = each.match
    alike = "" if match.is_similar else "   (paired by order: neither size nor duration is similar)"
    yield name_text(
        f"old #{match.old}, new #{match.new}  {each.server} {arrow_of(old, each.direction)}  {each.verdict}{alike}"
    )
    was, now = (view_verdict(verdict) for verdict in (each.old_verdict, each.new_verdict))
    yield f"    {'limited by':<{WIDTH}} {was.label} → {now.label}"
    costs = [_saving(was), _saving(now)]
    if costs != ["none", "none"]:
        yield f"    {'cost of the limit':<{WIDTH}} {' → '.join(costs)}"
    receiver = role_of(old, each.direction[-1])
    left_out = _left_out(each, old, new)
    for change in each.changes:
        if (change.old or change.new) and change.name not in left_out:
            yield f"    {_change(change, receiver)}"
    yield from (f"    {_finding(finding, old)}" for finding in each.findings)
    yield f"    now: {_small(now.answer)}"
    if now.fix:
        yield f"    {advice_label('Fix', each.new_verdict)}: {now.fix}"


def _saving(verdict: VerdictView) -> str:
    """Return the cost of a verdict, worded as in the verdict's own sentence."""
    return verdict.row.cost.replace("≤", "up to").replace("~", "about") or "none"


def _small(text: str) -> str:
    """Lowercase the first letter of a sentence that follows a colon."""
    return text[:1].lower() + text[1:]


def _left_out(each: Pair, old: Connection, new: Connection) -> set[str]:
    """Return the quantities to omit: percentiles of few messages, and those that the costs already cover."""
    names = set()
    messages = [
        connection.a_to_b.messages if each.direction == "a_to_b" else connection.b_to_a.messages
        for connection in (old, new)
    ]
    is_decided = {each.change(name).verdict for name in ("goodput_bps", "message_delay_p95_ns")} & {"better", "worse"}
    if min(messages) < MESSAGES and each.change("message_delay_p95_ns").verdict not in ("better", "worse"):
        names.add("message_delay_p95_ns")
    if is_decided:
        names.add("lost_ns")
    return names


@dataclass(frozen=True, slots=True)
class ChangeView:
    """The change of a quantity: before, after, the difference, and ``better`` or ``worse`` if it is either."""

    old: str
    new: str
    change: str
    verdict: str


def view_change(name: str, old: float | None, new: float | None, verdict: str | None) -> ChangeView:
    """Put the change of a quantity in words."""
    factor = new / old if old and new is not None and name != "resent_share" else 1
    change = change_text(factor) if abs(factor - 1) >= SAME else ""
    judged = verdict if verdict in ("better", "worse") else ""
    return ChangeView(value_text(name, old), value_text(name, new), change, judged or "")


def _change(change: Change, receiver: str) -> str:
    shown = view_change(change.name, change.old, change.new, change.verdict)
    text = f"{NAMES[change.name].replace('receiver', receiver):<{WIDTH}} {shown.old} → {shown.new}"
    text += f" ({shown.change})" if shown.change else ""
    return f"{text}  {shown.verdict}" if shown.verdict else text


def value_text(name: str, value: float | None) -> str:
    """Format a quantity in the unit that its name ends with."""
    if value is None:
        return "unknown"
    if name.endswith("_share"):
        return share_text(value, places=2)
    text = _TEXTS.get(name.rpartition("_")[2])
    return f"{value:,.0f}" if text is None else text(value)


def _finding(change: FindingChange, old: Connection | None = None) -> str:
    arrow = "" if old is None or change.direction is None else f" {arrow_of(old, change.direction)}"
    text = f"{change.kind:<5} {change.code} {change.name}{arrow}"
    if max(change.old, change.new) > 1:
        text += f", {change.old:,} → {change.new:,}"
    # The pair's cost is already shown: the time of new and resolved findings would repeat it.
    if (change.old_cost_ns or change.new_cost_ns) and (old is None or change.kind == "stays"):
        text += f", time lost {_cost(change.old_cost_ns)} → {_cost(change.new_cost_ns)}"
    if change.old_lost_bps or change.new_lost_bps:
        text += f", rate lost {rate_text(change.old_lost_bps)} → {rate_text(change.new_lost_bps)}"
    return name_text(f"{text}  {change.verdict}" if change.verdict in ("better", "worse") else text)


def _cost(cost_ns: int) -> str:
    return time_text(cost_ns) if cost_ns else "0"


def _unmatched(which: str, analysis: Analysis, numbers: tuple[int, ...], count: int) -> Iterator[str]:
    for number in numbers[:SHOWN_UNMATCHED]:
        connection = analysis.connections[number]
        there, back = bytes_text(connection.a_to_b.unique_bytes), bytes_text(connection.b_to_a.unique_bytes)
        sizes = f"{there} {arrow_of(connection, 'a_to_b')}, {back} {arrow_of(connection, 'b_to_a')}"
        yield name_text(f"    {which} #{number}  {connection.a} → {connection.b}   {sizes}")
    if count > SHOWN_UNMATCHED:
        yield f"    {which}: {count - SHOWN_UNMATCHED:,} more"
