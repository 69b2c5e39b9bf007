"""The verdicts on all connections of a capture as columns, for any number of connections.

In: an analysis. Out: columns of what `Verdict` holds. Time is divided for all connections at once; who can change it
and how sure that is, the judge says of one connection of each situation, and of each connection that a rule or a host's
snapshot says more of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpwin.analysis import Analysis
from tcpwin.limits.budget import GROUPS, ITEM_LIMITS, ITEMS, WINDOW_ITEMS
from tcpwin.limits.opinion import CLOSED_SHARE, DOUBLED_SEGMENTS, DOUBLED_SHARE
from tcpwin.limits.ranking import judged_closely
from tcpwin.limits.verdict import (
    CLOSE_SHARE,
    LIKE_SHARE,
    MENDABLE,
    MIN_COST_NS,
    MIN_SHARE,
    MISSED_SHARE,
    judge_connection,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tcpwin.analysis import Table

VERDICT_COLUMNS = (
    *("limit", "second_limit", "share", "cost_ns", "cost_low_ns", "cost_high_ns", "confidence", "owner", "side"),
    *("direction", "lost_ns", "also", "is_problem"),
)
"""Attributes of `Verdict` that have a column each."""
FEW = 1000
"""Connections that are judged one by one; of more, columns are read."""
SIDES = ("a_to_b", "b_to_a")
ORDER = tuple(dict.fromkeys(ITEM_LIMITS[item] for item in ITEMS))
"""Limits that packets alone tell, in the order in which the judge meets them."""


def verdict_columns(analysis: Analysis, *, few: int = FEW) -> Table:
    """The verdict on every connection, in their order; the columns are `VERDICT_COLUMNS`, null where there is no value.

    Args:
        few: connections that are judged one by one; of more, only those that differ in kind.
    """
    import numpy as np

    from tcpwin.analysis import Table

    if len(analysis) <= few:
        verdicts = [connection.verdict for connection in analysis.connections]
        return Table({name: _column([getattr(each, name) for each in verdicts]) for name in VERDICT_COLUMNS})
    bulk = _Bulk(analysis)
    closely = dict(judged_closely(analysis))
    for id in bulk.undecided():
        if id not in closely:
            closely[id] = judge_connection(analysis.connections[id])
    columns = bulk.columns(list(closely))
    for id, verdict in closely.items():
        for name, values in columns.items():
            values[id] = getattr(verdict, name)
    return Table({name: _masked(values) if values.dtype == np.object_ else values for name, values in columns.items()})


def _column(values: list[Any]) -> NDArray[Any]:
    import numpy as np

    if values and not any(isinstance(each, str | None) for each in values):
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return _masked(column)


def _masked(values: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    return np.ma.masked_array(values, mask=[each is None for each in values.tolist()])


class _Side:
    """One direction of every connection."""

    def __init__(self, table: Table, name: str) -> None:
        import numpy as np

        self.table, self.name = table, name
        items = {item: self.numbers(f"budget_{item}_ns") for item in ITEMS}
        window_ns = np.sum([items[item] for item in WINDOW_ITEMS], axis=0)
        scale = self.texts("window_scale_state")
        most, mean = self.numbers("receive_window_max_bytes"), self.numbers("receive_window_mean_bytes")
        has_mean = ~np.ma.getmaskarray(self._column("receive_window_mean_bytes"))
        episodes = self.numbers("zero_window_episode_count")
        closed = (episodes > 0) & (self.numbers("zero_window_ns") >= CLOSED_SHARE * window_ns)
        slow = closed | ((scale != "disabled") & (most > 0) & has_mean & (mean < most / 2))
        times = {limit: np.zeros(len(window_ns), dtype=np.int64) for limit in ORDER}
        for item, ns in items.items():
            limit = ITEM_LIMITS[item]
            if item in WINDOW_ITEMS:
                times["receiver_application"] += np.where(slow, ns, 0)
                times[limit] += np.where(slow, 0, ns)
            else:
                times[limit] += ns
        self.times = np.stack([times[limit] for limit in ORDER])
        self.total_ns = self.times.sum(axis=0)
        acked, unique = self.numbers("acked_bytes"), self.numbers("unique_bytes")
        self.carried_bytes = np.maximum(acked, unique)
        data_segments, again = self.numbers("data_segments"), self.numbers("retransmissions")
        self.syn_again = self.numbers("syn_retransmissions") > 0
        self.is_doubled = (data_segments >= DOUBLED_SEGMENTS) & (again >= DOUBLED_SHARE * data_segments)
        # What an opinion looks at, beside the limit.
        self.traits = [
            self.codes("view"),
            self.codes("window_scale_state"),
            self.codes("window_scale_disabled_by"),
            np.ma.getmaskarray(self._column("receive_window_max_bytes")),
            has_mean,
            most > 0,
            episodes > 0,
            items["zero_window"] * 2 >= window_ns,
            np.sum([items[item] for item in GROUPS["loss recovery"]], axis=0) >= items["after_loss"],
            items["slow_start"] >= items["congestion"],
            self.numbers("missed_bytes") > MISSED_SHARE * np.maximum(acked, 1),
            self.is_doubled,
            slow,
        ]

    def judge(self, is_disturbed: NDArray[np.bool_], is_sampled: NDArray[np.bool_]) -> None:
        """Lost time and problems, as the judge sees them without findings."""
        import numpy as np

        mendable = np.array([limit in MENDABLE for limit in ORDER])
        lost = np.where(mendable[:, None], self.times, 0)
        handshake, idle = ORDER.index("handshake"), [ORDER.index("none"), ORDER.index("sender_application")]
        lost[handshake] = np.where(is_disturbed, self.times[handshake], 0)
        self.lost, self.lost_ns = lost, lost.sum(axis=0)
        busy_ns = self.total_ns - self.times[idle].sum(axis=0) - np.where(is_disturbed, 0, self.times[handshake])
        is_much = (self.lost_ns >= MIN_COST_NS) & ~is_sampled
        self.is_problem = is_much & (self.lost_ns / np.maximum(busy_ns, 1) >= MIN_SHARE)
        # A window that stays closed is a problem at any share: the engine knows which did.
        self.may_be_open = is_much & ~self.is_problem & (self.numbers("zero_window_episode_count") > 0)

    def numbers(self, field: str) -> NDArray[Any]:
        """A field; 0 where there is no value."""
        import numpy as np

        return np.ma.filled(self._column(field), 0)

    def texts(self, field: str) -> NDArray[Any]:
        """A field; empty where there is no value."""
        import numpy as np

        return np.ma.filled(self._column(field), "")

    def codes(self, field: str) -> NDArray[np.int64]:
        """A field of few different texts as numbers."""
        return _codes(self.texts(field))

    def _column(self, field: str) -> NDArray[Any]:
        return self.table[f"{self.name}.{field}"]


class _Bulk:
    """All connections of an analysis, by their packets alone."""

    def __init__(self, analysis: Analysis) -> None:
        import numpy as np

        self.analysis = analysis
        fields = (
            *("zero_window_episode_count", "zero_window_ns", "receive_window_max_bytes", "receive_window_mean_bytes"),
            *("window_scale_state", "window_scale_disabled_by", "view", "syn_retransmissions", "unique_bytes"),
            *("acked_bytes", "missed_bytes", "data_segments", "retransmissions"),
            *(f"budget_{item}_ns" for item in ITEMS),
        )
        table = analysis.connections.table(
            ["close", "sampled", *(f"{side}.{field}" for side in SIDES for field in fields)]
        )
        self.close: NDArray[Any] = table["close"]
        self.is_sampled = np.ma.filled(table["sampled"], False).astype(bool)
        self.sides = [_Side(table, side) for side in SIDES]
        self.syn_again = [side.syn_again for side in self.sides]
        self.is_disturbed = self.syn_again[0] | self.syn_again[1] | (self.close == "unanswered")
        for side in self.sides:
            side.judge(self.is_disturbed, self.is_sampled)
        main = self._pick([side.carried_bytes for side in self.sides])
        a, b = self.sides
        by_loss = np.where(a.is_problem != b.is_problem, b.is_problem, b.lost_ns > a.lost_ns)
        by_loss = np.where((a.is_problem == b.is_problem) & (a.lost_ns == b.lost_ns), main, by_loss)
        self.is_problem = a.is_problem | b.is_problem
        self.chosen = np.where(self.is_problem, by_loss, main).astype(int)
        self.has_data = (a.carried_bytes > 0) | (b.carried_bytes > 0)

    def _pick(self, values: list[NDArray[Any]]) -> NDArray[np.int64]:
        return (values[1] > values[0]).astype(int)

    def of_chosen(self, values: list[NDArray[Any]]) -> NDArray[Any]:
        """Of each connection the direction that its verdict is on."""
        import numpy as np

        found: NDArray[Any] = np.where(self.chosen, values[1], values[0])
        return found

    def undecided(self) -> list[int]:
        """Connections of which columns do not tell whether a window stays closed for good."""
        problems = {id for id, _ in self.analysis._engine.problems()}
        may_be_open: list[int] = (self.sides[0].may_be_open | self.sides[1].may_be_open).nonzero()[0].tolist()
        return [id for id in may_be_open if id in problems]

    def columns(self, known: list[int]) -> dict[str, NDArray[Any]]:
        """The columns; of connections that are known already they are not to be used."""
        import numpy as np

        times = self.of_chosen([side.times for side in self.sides])
        lost = self.of_chosen([side.lost for side in self.sides])
        total_ns = self.of_chosen([side.total_ns for side in self.sides])
        ranked = times.copy()
        ranked[ORDER.index("none")] = 0
        order = np.argsort(-ranked, axis=0, kind="stable")
        first_ns, second_ns = (np.take_along_axis(ranked, order[place : place + 1], axis=0)[0] for place in (0, 1))
        is_like = (first_ns - second_ns < CLOSE_SHARE * total_ns) | (second_ns >= LIKE_SHARE * first_ns)
        names, nothing = np.array(ORDER, dtype=object), np.array(None, dtype=object)
        limit = np.where(first_ns > 0, names[order[0]], "none").astype(object)
        second = np.where((second_ns > 0) & is_like, names[order[1]], nothing)
        share = np.where(total_ns > 0, first_ns / np.maximum(total_ns, 1), 0.0)
        lost_ns = self.of_chosen([side.lost_ns for side in self.sides])
        is_designed = np.array([each not in MENDABLE for each in limit])
        is_mended = (limit == "handshake") & self.is_disturbed & (first_ns > 0)
        also = np.where(self.is_problem & is_designed & ~is_mended, names[np.argmax(lost, axis=0)], nothing)
        direction = np.where(self.has_data, np.array(SIDES, dtype=object)[self.chosen], nothing)
        both = zip(*(side.traits for side in self.sides), strict=True)
        traits: list[NDArray[Any]] = [self.of_chosen(list(each)) for each in both]
        named: list[NDArray[Any]] = [limit, second, direction, self.close]
        traits += [_codes(each) for each in named]
        traits += [*self.syn_again, self.chosen, share < 0.5, self.is_sampled, total_ns > 0, self.is_problem]
        situation = _combine(traits)
        situation[known] = -1
        confidence, owner, side = self._opinions(situation)
        return {
            "limit": limit,
            "second_limit": second,
            "share": share,
            "cost_ns": first_ns,
            "cost_low_ns": np.where(confidence == "possible", 0, first_ns),
            "cost_high_ns": first_ns.copy(),
            "confidence": confidence,
            "owner": owner,
            "side": side,
            "direction": direction,
            "lost_ns": lost_ns,
            "also": also,
            "is_problem": self.is_problem.copy(),
        }

    def _opinions(self, situation: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
        """Confidence, owner and side: what the judge says of one connection of each situation."""
        import numpy as np

        _, first, place = np.unique(situation, return_index=True, return_inverse=True)
        judged = [judge_connection(self.analysis.connections[id]) for id in first.tolist()]
        return tuple(
            np.array([getattr(each, name) for each in judged], dtype=object)[place]
            for name in ("confidence", "owner", "side")
        )


def _combine(parts: list[NDArray[Any]]) -> NDArray[np.int64]:
    """One number for each combination of small numbers."""
    import numpy as np

    combined = np.zeros(len(parts[0]), dtype=np.int64)
    bits = 0
    for part in parts:
        width = int(part.max(initial=0)).bit_length()
        combined = (combined << width) | part
        bits += width
    assert bits < 63, "more situations than a number tells apart"
    return combined


def _codes(values: NDArray[Any]) -> NDArray[np.int64]:
    import numpy as np

    numbers = {text: number for number, text in enumerate(dict.fromkeys(values.tolist()))}
    return np.fromiter((numbers[text] for text in values.tolist()), dtype=np.int64, count=len(values))
