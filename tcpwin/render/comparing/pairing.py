"""A pairing as text: where packets were lost, which clock is ahead, and what was changed on the path.

In: a Pairing. Out: lines, connections with most losses first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tcpwin.render.view.verdict import frames_filter, view_verdict
from tcpwin.units import bytes_text, count_text, name_text, share_text, short_name, time_text

if TYPE_CHECKING:
    from tcpwin.limits import Verdict
    from tcpwin.pairing import (
        Change,
        Clock,
        JudgedConnection,
        JudgedDirection,
        PairedConnection,
        PairedDirection,
        Pairing,
        UnpairedConnection,
        View,
    )

_NAMED = 5
_LOST_NAMED = 12
_FIELDS = {
    "mss": "MSS",
    "window_scale": "window scale",
    "sack_permitted": "SACK permitted",
    "timestamps": "timestamps",
    "sack_blocks": "SACK blocks",
    "window": "window field",
    "dscp": "DSCP",
    "ecn": "ECN",
    "congestion_mark": "congestion mark",
    "flags": "TCP flags",
    "ip_id": "IP id",
    "source": "source",
    "destination": "destination",
    "sequence": "sequence numbers",
    "acknowledgment": "acknowledgment numbers",
}
_ECN = ("Not-ECT", "ECT(1)", "ECT(0)", "CE")
"""ECN codepoints (RFC 3168 §5)."""
_FLAGS = ("FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "AE")
"""TCP flags from the lowest bit (RFC 9293 §3.1, RFC 9768 §3.1)."""
_CAUSES = {
    "lost": "after a lost packet",
    "ack_lost": "after lost ACKs",
    "needless": "needless",
    "refused": "after packets dropped beyond {far}",
    "unknown": "cause unknown",
}
_UNKNOWN = {
    "outside": "sent while the other capture may not have been running",
    "unseen": "missing from a capture that has gaps",
    "in_neither": "in neither capture, by gaps in the sender's IP IDs",
}
"""Reasons why the fate of packets is unknown."""
_PARTS_PER_MILLION = 0.05
"""Minimum drift that is reported: capture clocks are no more precise."""


def render_pairing(pairing: Pairing, *, limit: int = 10, connection: int | None = None) -> Iterator[str]:
    """Render the answer, the clocks and the connections: those that lost most packets first, or one alone."""
    for letter, name in zip("ab", capture_names(pairing), strict=True):
        yield f"{letter}  {name}"
    yield ""
    yield from summarize_pairing(pairing)
    if connection is not None:
        yield ""
        yield from _connection_lines(pairing.connections[connection], pairing.judge(connection))
        return
    worst_first = most_lost_first(pairing)
    for each in worst_first[:limit]:
        yield ""
        yield from _connection_lines(each, pairing.judge(each.number))
    if len(worst_first) > limit:
        yield ""
        yield f"{count_text(len(worst_first) - limit, 'more connection')}: see --limit N or --json"
    for line in unpaired_lines(pairing):
        yield ""
        yield line


def capture_names(pairing: Pairing) -> tuple[str, str]:
    """Return the names of both captures, with folders only if they differ in nothing else."""
    one, other = short_name(pairing.name_a), short_name(pairing.name_b)
    return (one, other) if one != other else (name_text(pairing.name_a), name_text(pairing.name_b))


def summarize_pairing(pairing: Pairing) -> Iterator[str]:
    """Return where packets were lost, the clocks' offset, and which capture lacks packets."""
    yield from _answer(pairing)
    yield from _clock_lines(pairing.clock)
    yield from _gap_lines(pairing)


def most_lost_first(pairing: Pairing) -> list[PairedConnection]:
    """Sort connections by packets lost, most first."""
    return sorted(pairing.connections, key=lambda each: (-each.lost, -each.unknown, each.number))


def _answer(pairing: Pairing) -> Iterator[str]:
    if not len(pairing):
        empty = [letter for letter, segments in zip("ab", pairing.segments, strict=True) if not segments]
        if empty:
            both = "Both captures have" if len(empty) == 2 else f"Capture {empty[0]} has"
            yield f"{both} no TCP packet: there is nothing to pair."
            return
        yield "No connection is in both captures: losses between them are unknown."
        return
    directions = [each for connection in pairing.connections for each in connection.directions]
    lost, sent = sum(each.lost for each in directions), sum(each.sent for each in directions)
    unknown = sum(each.unknown for each in directions)
    if lost:
        # The direction that lost packets is the answer, whichever capture was named first.
        by_sender = {letter: [each for each in directions if each.leaves_at == letter] for letter in "ab"}
        for leaves_at, there in sorted(by_sender.items(), key=lambda item: not any(each.lost for each in item[1])):
            between = f"between {leaves_at} and {'b' if leaves_at == 'a' else 'a'}"
            count, of = sum(each.lost for each in there), sum(each.sent - each.unknown for each in there)
            if count:
                yield f"Lost {between}: {count:,} of {of:,} packets ({share_text(count / of, places=2)})."
            elif of:
                yield f"Lost {between}: none of {of:,} packets."
    elif unknown:
        yield f"No packet is known to be lost between the two points; the fate of {sent - unknown:,} is known."
    else:
        yield f"No packet was lost between the two points: all {sent:,} in both directions arrived."
    for letter in "ab":
        refused = sum(each.resent.refused for each in directions if each.leaves_at != letter)
        if refused:
            yield f"Dropped beyond {letter}: {count_text(refused, 'packet')} arrived there and had to be retransmitted."
    if unknown:
        sums = {name: sum(getattr(each, name) for each in directions) for name in ("outside", "unseen", "in_neither")}
        reasons = "; ".join(f"{count:,} {_UNKNOWN[name]}" for name, count in sums.items() if count)
        yield f"Unknown: {count_text(unknown, 'packet')}, which may have been lost: {reasons}."
    if any(each.outside for each in directions):
        yield from _span_lines(pairing)


def _span_lines(pairing: Pairing) -> Iterator[str]:
    """Return the time span of each capture on a's clock, starting with the earlier one; empty if one file has both."""
    a, b = pairing.spans_ns
    if a is None or b is None or a == b or pairing.clock is None:
        return
    first, last = pairing.clock.pieces[0], pairing.clock.pieces[-1]
    b = (b[0] - first.at(a[0]), b[1] - last.at(a[1]))
    from_ns = min(a[0], b[0])
    spans = (
        f"{letter} from {time_text(span[0] - from_ns)} to {time_text(span[1] - from_ns)}"
        for letter, span in zip("ab", (a, b), strict=True)
    )
    yield f"Captured: {', '.join(spans)}."


def _clock_lines(clock: Clock | None) -> Iterator[str]:
    if clock is None:
        return
    for index, piece in enumerate(clock.pieces):
        offset = time_text(abs(piece.offset_ns))
        ahead = "equal to" if not piece.offset_ns else f"{offset} {'ahead of' if piece.offset_ns > 0 else 'behind'}"
        is_drifting = abs(piece.drift_ppm) >= _PARTS_PER_MILLION
        drift = f", {piece.drift_ppm:+.2f} ppm" if is_drifting else ", no visible drift"
        within = (
            "; packets of one direction only: the offset includes the delay" if piece.uncertainty_ns is None else ""
        )
        begin = "Clock of b" if index == 0 else f"  set by {time_text(clock.steps_ns[index - 1])}, from then on"
        yield f"{begin}: {ahead} a{drift}{within}."
    most_ns = max((piece.uncertainty_ns or 0 for piece in clock.pieces), default=0)
    if most_ns:
        yield (
            "If the path is asymmetric, delays and clock offset are off by at most "
            f"{time_text(most_ns)}: too long in one direction, too short by as much in the other."
        )


def _gap_lines(pairing: Pairing) -> Iterator[str]:
    for letter, missed in zip("ab", pairing.missed, strict=True):
        if missed:
            yield f"Capture {letter} lacks at least {count_text(missed, 'packet')} that passed there."


def _connection_lines(connection: PairedConnection, judged: JudgedConnection | None) -> Iterator[str]:
    first, _ = connection.directions
    ends = f"{first.source} ↔ {first.target}"
    if judged is not None:
        one, other = judged.roles
        ends = f"{one} {first.source} ↔ {other} {first.target}"
    yield f"#{connection.number}  {ends}"
    if first.is_translated:
        yield f"    in b      {first.source_in_b} ↔ {first.target_in_b} (address translation, NAT)"
    if judged is not None:
        for line in verdict_lines(judged):
            yield f"    {line}"
    for direction in connection.directions:
        yield from _direction_lines(direction, None if judged is None else judged.directions[direction.index])


def verdict_lines(judged: JudgedConnection) -> Iterator[str]:
    """Render what limited a paired connection by both captures, what to do, and where one capture alone differs."""
    yield from (f"{label}: {text}" if label else text for label, text in verdict_parts(judged))


def verdict_parts(judged: JudgedConnection) -> Iterator[tuple[str, str]]:
    """Return the same as pairs of label and text; the label may be empty."""
    main, words = judged.main, view_verdict(judged.verdict)
    yield "", words.answer
    yield from (each for each in words.advice if each[0] != "Evidence")
    frames = f"; in {main.judged_in}: {words.evidence}" if words.evidence else ""
    yield "Why", f"{words.why}{frames}"
    yield from (("", line) for line in alone_lines(main))


def alone_lines(judged: JudgedDirection) -> Iterator[str]:
    """Return the verdict that each capture alone gives, if it is another limit."""
    for letter, alone in sorted(judged.alone.items()):
        if alone.limit != judged.verdict.limit:
            yield f"Capture {letter} alone would say: {_limited(alone)}."


def _limited(verdict: Verdict) -> str:
    label = view_verdict(verdict).label
    return label if verdict.limit in ("none", "capture") else f"limited by {label}"


def view_lines(judged: JudgedDirection) -> Iterator[str]:
    """Render flight and window as the sender saw them, and as the receiver sent them."""
    sender, receiver = judged.sender_view, judged.receiver_view
    if sender.flight_max_bytes:
        mean = bytes_text(sender.flight_mean_bytes or 0)
        yield f"in flight at {sender.capture}: {mean} on average, {bytes_text(sender.flight_max_bytes)} at most"
        shown = [text for view in (receiver, sender) if (text := _window_text(view))]
        if len(shown) == 2 and shown[0] == shown[1]:
            yield f"window: {shown[0]}, the same as sent at {receiver.capture} and received at {sender.capture}"
        elif len(shown) == 2:
            yield (f"window: {shown[0]}, as sent at {receiver.capture}; {shown[1]}, as received at {sender.capture}")


def _window_text(view: View) -> str | None:
    if view.window_max_bytes is None or view.window_min_bytes is None:
        return None
    text = _range_text(bytes_text(view.window_min_bytes), bytes_text(view.window_max_bytes))
    return f"{text}, closed for {time_text(view.zero_window_ns)}" if view.zero_window_ns else text


def _range_text(least: str, most: str) -> str:
    return most if least == most else f"{least} to {most}"


def _direction_lines(direction: PairedDirection, judged: JudgedDirection | None) -> Iterator[str]:
    """Render the packet counts of a direction and the lines below them."""
    loss = f" ({share_text(direction.loss, places=2)})" if direction.lost else ""
    counts = [f"{direction.sent:,} sent", f"{direction.lost:,} lost{loss}"]
    counts += [
        f"{count:,} {word}"
        for count, word in (
            (direction.late, "late"),
            (direction.duplicated, "duplicated"),
            (direction.unknown, "unknown"),
            (direction.injected, "injected on the path"),
        )
        if count
    ]
    unit = " (counted as segments, as on the wire)" if direction.unit == "segment" else ""
    yield f"    {direction.source} → {direction.target}: {', '.join(counts)}{unit}"
    for line in direction_lines(direction, judged):
        yield f"        {line}"


def direction_lines(direction: PairedDirection, judged: JudgedDirection | None) -> Iterator[str]:
    """Render lost frames, delays, flight and windows, causes of retransmissions, unknown fates with reasons, and
    changed fields.
    """
    if direction.lost_frames:
        # An offloaded frame is several segments on the path, so frames cannot be counted.
        more = direction.lost - _LOST_NAMED if direction.unit == "frame" else len(direction.lost_frames) - _LOST_NAMED
        many = f"{more:,} " if direction.unit == "frame" else ""
        others = f" and {many}more" if more > 0 else ""
        yield f"lost, in {direction.leaves_at}: {frames_filter(direction.lost_frames[:_LOST_NAMED])}{others}"
    if direction.missed_at_target:
        far = {"a": "b", "b": "a"}[direction.leaves_at]
        missed = count_text(direction.missed_at_target, "packet")
        yield f"delivered by the receiver's ACKs alone, not in {far}: {missed}"
    if direction.delay is not None:
        delay = direction.delay
        least, mean, most = (time_text(ns) for ns in (delay.least_ns, delay.mean_ns, delay.most_ns))
        before = delay.before_loss_ns
        lost = (
            f"; {time_text(before)} on average for the last packets before a loss"
            if before is not None and direction.lost
            else ""
        )
        range_text = (
            f"{least} for each packet" if least == most else f"{least} at least, {mean} on average, {most} at most"
        )
        yield f"delay {range_text}{lost}"
    if judged is not None:
        yield from view_lines(judged)
    if direction.retransmissions:
        far = {"a": "b", "b": "a"}[direction.leaves_at]
        causes = ((getattr(direction.resent, name), words.format(far=far)) for name, words in _CAUSES.items())
        reasons = ", ".join(f"{count:,} {words}" for count, words in causes if count)
        yield f"{count_text(direction.retransmissions, 'retransmission')}: {reasons}"
    for name, why in _UNKNOWN.items():
        if count := getattr(direction, name):
            yield f"unknown {count:,}: {why}"
    for change in direction.changes:
        yield f"changed on the path: {change_on_the_way(change)}"


def change_on_the_way(change: Change) -> str:
    """Describe a field that the path changed: its value before and after, and the first frame that shows it."""
    name = _FIELDS.get(change.field, change.field)
    frames = f"first a:{change.frame_a}, b:{change.frame_b}" if change.frame_a else "no packet in both captures"
    if isinstance(change.came_as, str):
        return f"{name} {change.left_as} → {change.came_as} (NAT, every packet, {frames})"
    if change.packets is None:
        return f"{name} rewritten by {change.came_as or 0:+,} (every packet, {frames})"
    values = _values_text(change)
    rule = f"; {change.rule}, certain" if change.rule else ""
    return f"{name} {values} ({count_text(change.packets, 'packet')}, {frames}{rule})"


def _values_text(change: Change) -> str:
    """Return a field's value before and after; an option missing on one side was removed or added."""
    if change.field == "sack_permitted":
        return "added" if change.came_as else "removed"
    if change.field != "ip_id":
        if change.came_as is None and change.left_as is not None:
            return f"{_value_text(change.field, change.left_as)} removed"
        if change.left_as is None and change.came_as is not None:
            return f"{_value_text(change.field, change.came_as)} added"
    return " → ".join(_value_text(change.field, value) for value in (change.left_as, change.came_as))


def _value_text(field: str, value: int | str | None) -> str:
    """Format a field's value by its RFC name."""
    if value is None:
        return "0" if field == "ip_id" else "none"
    if isinstance(value, str):
        return value
    if field in ("ecn", "congestion_mark"):
        return _ECN[value]
    if field == "flags":
        return "+".join(name for bit, name in enumerate(_FLAGS) if value >> bit & 1) or "none"
    return str(value)


def unpaired_lines(pairing: Pairing) -> Iterator[str]:
    """Render proxies, and connections found in one capture only, the largest by name."""
    for proxy in pairing.proxies[:_NAMED]:
        yield (
            f"Proxy: {proxy.in_a.source} ↔ {proxy.in_a.target} in a and {proxy.in_b.source} ↔ {proxy.in_b.target} in b "
            "carry the same bytes as two connections: something in between terminates TCP."
        )
    for letter in "ab":
        alone = sorted((each for each in pairing.unpaired if each.capture == letter), key=lambda each: -sum(each.bytes))
        if alone:
            named = "; ".join(map(_unpaired_text, alone[:_NAMED]))
            more = "; …" if len(alone) > _NAMED else ""
            yield f"Only in {letter}: {count_text(len(alone), 'connection')}: {named}{more}"


def _unpaired_text(each: UnpairedConnection) -> str:
    size = bytes_text(sum(each.bytes))
    return name_text(f"{each.source} ↔ {each.target}: {count_text(sum(each.packets), 'packet')}, {size}")
