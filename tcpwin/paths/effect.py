"""The effect of a change that was made between two captures: what was predicted, what came of it, what limits now.

In: a connection before and after, and the settings that were changed. Out: Effect. The prediction is that of
`whatif` for the connection before, so it knows nothing of the one after.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpwin.analysis import DirectionName
from tcpwin.limits import (
    MIN_DELAY_NS,
    TOLERANCE,
    Analysis,
    Comparison,
    Connection,
    Verdict,
    analysis_of,
    compare,
)
from tcpwin.paths.changes import SETTINGS, ChangeError, read_changes, size_of
from tcpwin.paths.ends import End
from tcpwin.paths.path import fit_path
from tcpwin.paths.prediction import ERROR, WIDE, Prediction, Range, WhatIfError, whatif
from tcpwin.units import bytes_text, rate_text, share_text, time_text

if TYPE_CHECKING:
    from tcpwin.hosts import Bundle
    from tcpwin.sources import Packets, Source

AS_PREDICTED, MORE, LESS = "as predicted", "more than predicted", "less than predicted"
BETTER, NONE, WORSE = "better", "no effect", "worse"
LIKE_VOLUME = 1.25
"""Largest ratio of two payloads whose rates may be compared although slow start is a smaller part of the larger one."""
LOSSIER, LEAST_LOSS = 2.0, 0.001
"""Ratio of the shares of lost segments from which the path counts as another one, and the least share that counts."""
LIKE_RATE = 1.5
"""Largest ratio of the path's rates before and after that counts as the same path."""
GOODPUT, DELAY = "goodput_bps", "message_delay_p95_ns"
"""The quantity that decides: the rate of a transfer, or the delay of messages."""
WAITING_SHARE = 0.5
"""Share of the time without anything to send from which messages count, because their rate is the application's."""
LEAST_MESSAGES = 5


@dataclass(frozen=True, slots=True)
class Effect:
    """A change between two captures of a transfer.

    Attributes:
        changes: the changed settings: ``receiver.tcp_rmem=32M``.
        old_connection, new_connection: the connections' numbers.
        direction: ``a_to_b`` or ``b_to_a``: the one that the verdict before is about.
        quantity: what decides: ``goodput_bps``, or ``message_delay_p95_ns`` if the application waited for most of the
            time.
        old, new: its values.
        predicted: its value as predicted from the capture before; None if that shows too little, for the reason in
            `refused`.
        prediction: the whole prediction.
        old_limit, new_limit: what limited it, of `tcpwin.limits.LIMITS`.
        verdict: ``as predicted``, ``more than predicted``, ``less than predicted``, ``worse``, or ``no effect``,
            whether or not one was predicted; without a prediction, ``better`` stands for the first three.
        doubts: reasons why the difference may have other causes, one sentence each.
        text: the answer in a few sentences.
    """

    changes: tuple[str, ...]
    old_connection: int
    new_connection: int
    direction: str
    quantity: str
    old: float
    new: float
    predicted: Range | None
    prediction: Prediction | None
    refused: str | None
    old_limit: str
    new_limit: str
    verdict: str
    doubts: tuple[str, ...]
    text: str


def judge_change(
    old: Connection | Packets | Source | Bundle | Analysis,
    new: Connection | Packets | Source | Bundle | Analysis,
    settings: Mapping[str, str] | Iterable[tuple[str, str]],
    *,
    comparison: Comparison | None = None,
    tolerance: float = TOLERANCE,
) -> Effect:
    """Judge a change of settings by what it was predicted to bring and what it brought.

    >>> judge_change("before.zip", "after.zip", {"receiver.tcp_rmem": "32M"}).verdict

    Args:
        old, new: the connection before and after; or captures, of whose pairs the one that lost most time before is
            judged.
        settings: what was changed, as in :func:`whatif`.
        comparison: the captures' comparison, if it is already known.
        tolerance: share by which a rate may differ and still count as the same.

    Raises:
        ChangeError: a change is invalid, or none is given.
        WhatIfError: no connection of one capture is in the other, or its throughput is not known.
        TcpwinError: a capture cannot be read; see :func:`tcpwin.analyze`.
    """
    chosen = list(settings.items() if isinstance(settings, Mapping) else settings)
    if not chosen:
        raise ChangeError("name what was changed, such as receiver.tcp_rmem=32M")
    if isinstance(old, Connection) and isinstance(new, Connection):
        before, after = old, new
    elif isinstance(old, Connection) or isinstance(new, Connection):
        raise ChangeError("give two connections or two captures, not one of each")
    else:
        before, after = _worst_pair(analysis_of(old), analysis_of(new), comparison, tolerance)
    was, now = before.verdict, after.verdict
    path, path_after = fit_path(before, was.direction), fit_path(after, was.direction)
    if path is None or path_after is None or was.direction is None:
        raise WhatIfError(f"connection {before.id} carried no data before or after the change")
    changes = read_changes(path, chosen)
    prediction, refused = None, None
    try:
        prediction = whatif(before, chosen).prediction
    except WhatIfError as error:
        refused = str(error)
    quantity = _quantity(before, after, was.direction)
    old_value, new_value = (float(getattr(getattr(each, was.direction), quantity) or 0) for each in (before, after))
    if not (old_value and new_value):
        raise WhatIfError(f"the throughput of connection {before.id} is not known both before and after the change")
    predicted = None if prediction is None else _predicted(before, was.direction, quantity, old_value, prediction)
    verdict = _verdict(quantity, old_value, new_value, predicted, tolerance)
    ends, ends_after = (path.sender, path.receiver), (path_after.sender, path_after.receiver)
    doubts = [
        *_not_made(chosen, ends, ends_after),
        *_other_causes(before, after, was.direction, tolerance, is_rate=quantity == GOODPUT),
        *_other_losses(path.loss_share.value or 0.0, path_after.loss_share.value or 0.0),
        *_other_rates(path.rate_bps.value, path_after.rate_bps.value),
        *_other_settings(chosen, ends, ends_after),
    ]
    words = ", ".join(changes.words)
    return Effect(
        changes=changes.words,
        old_connection=before.id,
        new_connection=after.id,
        direction=was.direction,
        quantity=quantity,
        old=old_value,
        new=new_value,
        predicted=predicted,
        prediction=prediction,
        refused=refused,
        old_limit=was.limit,
        new_limit=now.limit,
        verdict=verdict,
        doubts=tuple(doubts),
        text=_text(words, quantity, old_value, new_value, predicted, refused, verdict, now),
    )


def _worst_pair(
    old: Analysis, new: Analysis, comparison: Comparison | None, tolerance: float
) -> tuple[Connection, Connection]:
    """Return the pair that lost most time before; of equal ones the larger."""
    found = comparison or compare(old, new, tolerance=tolerance)
    if not found.pairs:
        raise WhatIfError(f"no connection of {old.name} is in {new.name}")
    worst = max(found.pairs, key=lambda pair: (pair.old_verdict.lost_ns, pair.volume_bytes))
    return old.connections[worst.match.old], new.connections[worst.match.new]


def _quantity(before: Connection, after: Connection, direction: DirectionName) -> str:
    """Return what shows the effect: the application decides the rate of messages that it sends one by one."""
    sides = [getattr(each, direction) for each in (before, after)]
    budget = before.budget[direction]
    waiting_ns = budget.groups_ns["application"] + budget.groups_ns["turns"]
    are_messages = min(each.messages for each in sides) >= LEAST_MESSAGES
    are_timed = all(each.message_delay_p95_ns for each in sides)
    is_paced = waiting_ns >= WAITING_SHARE * budget.total_ns
    return DELAY if are_messages and are_timed and is_paced else GOODPUT


def _predicted(
    before: Connection, direction: DirectionName, quantity: str, value: float, prediction: Prediction
) -> Range:
    """Return the quantity as predicted. The time that a change saves is saved by the messages."""
    if quantity == GOODPUT:
        return prediction.goodput_bps
    likely = max(value - prediction.gain_ns / getattr(before, direction).messages, 0.0)
    error = ERROR if prediction.confidence == "likely" else WIDE - 1
    return Range(likely, likely / (1 + error), likely * (1 + error))


def _verdict(quantity: str, old: float, new: float, predicted: Range | None, tolerance: float) -> str:
    gains = new / old if quantity == GOODPUT else old / new
    is_same = 1 / (1 + tolerance) <= gains <= 1 + tolerance
    if predicted is None:
        return NONE if is_same else BETTER if gains > 1 else WORSE
    if quantity == GOODPUT:
        least, most = predicted.low / old, predicted.high / old
    else:
        least, most = old / max(predicted.high, 1.0), old / max(predicted.low, 1.0)
    if is_same:
        return NONE
    if least / (1 + tolerance) <= gains <= most * (1 + tolerance):
        return AS_PREDICTED
    if gains > most:
        return MORE
    return WORSE if gains < 1 else LESS


def _not_made(settings: Iterable[tuple[str, str]], before: tuple[End, End], after: tuple[End, End]) -> Iterable[str]:
    """Yield a sentence for each setting that the snapshots show unchanged or with another value."""
    for word, wanted in settings:
        name = word.partition(".")[2].removeprefix("net.ipv4.")
        place = int(SETTINGS[name] == "receiver")
        was, now = (ends[place].settings.get(f"net.ipv4.{name}") for ends in (before, after))
        if now is None:
            continue
        end = after[place].name
        asked, had, has = (size_of(name, value) for value in (wanted, was, now))
        if has != asked:
            yield f"the {end}'s snapshot after the change has {name} at {_value(has)}, not {_value(asked)}"
        elif had == asked:
            yield f"the {end}'s snapshot before the change already has {name} at {_value(had)}"


def _value(value: int | str | None) -> str:
    return bytes_text(value) if isinstance(value, int) else str(value)


def _other_causes(
    before: Connection, after: Connection, direction: DirectionName, tolerance: float, *, is_rate: bool
) -> Iterable[str]:
    rtts = before.path_rtt_ns, after.path_rtt_ns
    if rtts[0] and rtts[1] and abs(rtts[1] - rtts[0]) > max(tolerance * rtts[0], MIN_DELAY_NS):
        yield f"the path's round trip was {time_text(rtts[0])} before and {time_text(rtts[1])} after"
    scaled = [getattr(each, direction).window_scale.state == "disabled" for each in (before, after)]
    if scaled[0] is not scaled[1]:
        yield f"window scaling was {'off' if scaled[0] else 'on'} before and {'off' if scaled[1] else 'on'} after"
    volumes = [getattr(each, direction).unique_bytes for each in (before, after)]
    if is_rate and min(volumes) and max(volumes) > LIKE_VOLUME * min(volumes):
        yield (
            f"it carried {bytes_text(volumes[0])} before and {bytes_text(volumes[1])} after, and slow start is a "
            "smaller part of the larger transfer"
        )


def _other_losses(before: float, after: float) -> Iterable[str]:
    if max(before, after) >= LEAST_LOSS and max(before, after) >= LOSSIER * min(before, after):
        yield f"the path lost {share_text(before)} of the segments before and {share_text(after)} after"


def _other_rates(before: float | None, after: float | None) -> Iterable[str]:
    if before and after and max(before, after) > LIKE_RATE * min(before, after):
        yield f"the path carried {rate_text(before)} before and {rate_text(after)} after"


def _other_settings(
    settings: Iterable[tuple[str, str]], before: tuple[End, End], after: tuple[End, End]
) -> Iterable[str]:
    """Yield a sentence for each other setting that differs between the snapshots."""
    named = {word.partition(".")[2].removeprefix("net.ipv4.") for word, _ in settings}
    for setting, role in SETTINGS.items():
        place = int(role == "receiver")
        had, has = (size_of(setting, ends[place].settings.get(f"net.ipv4.{setting}")) for ends in (before, after))
        if setting not in named and had is not None and has is not None and had != has:
            yield f"{setting} of the {role} changed, too, from {_value(had)} to {_value(has)}"


def _text(
    words: str,
    quantity: str,
    old: float,
    new: float,
    predicted: Range | None,
    refused: str | None,
    verdict: str,
    now: Verdict,
) -> str:
    text = rate_text if quantity == GOODPUT else time_text
    is_rate = quantity == GOODPUT
    still = "still " if verdict == NONE else ""
    came = f"it {still}carries {text(new)}" if is_rate else f"they {still}take {text(new)}"
    if predicted is None:
        subject = "it carried" if is_rate else "95 % of the messages took at most"
        begin = f"Nothing could be predicted for {words} ({refused}). Before, {subject} {text(old)}; now "
        return f"{begin}{came}: {verdict}. Now {now.limited_by}."
    likely, low, high = (text(each) for each in (predicted.likely, predicted.low, predicted.high))
    span = "" if low == likely == high else f" ({low} to {high})"
    if likely == text(old):
        begin = f"With {words}, no change from {text(old)} was predicted; "
    elif is_rate:
        begin = f"With {words}, {likely}{span} were predicted instead of {text(old)}; "
    else:
        begin = f"With {words}, 95 % of the messages should take at most {likely}{span} instead of {text(old)}; "
    return f"{begin}{came}: {verdict}. Now {now.limited_by}."
