"""The verdicts on all connections of a capture as columns, for any number of connections, a part of them at a time.

In: an analysis. Out: columns of what `Verdict` holds. The judge's division takes columns as it takes one connection;
whose a limit is, how sure that is and what to do, the judge says of one connection of each situation, and of each
connection that a rule or a host's snapshot says more of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import nlargest
from typing import TYPE_CHECKING, Any

from tcpwin.analysis import DIRECTIONS
from tcpwin.limits.analysis import Analysis
from tcpwin.limits.division import (
    GROUPS_WEIGHED,
    MIN_COST_NS,
    NONE,
    ORDER,
    Division,
    by_limit,
    divide,
    silent_by_limit,
    traits_of,
    weigh,
    worse,
)
from tcpwin.limits.gains import Gain, carried_of, gain_of, part_of
from tcpwin.limits.roles import WELL_KNOWN_PORTS
from tcpwin.limits.tables import ITEMS, MENDABLE, VERDICT_COLUMNS
from tcpwin.limits.verdict import Verdict, judge_connection, judge_worded, numbers_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tcpwin.analysis import Table
    from tcpwin.limits.findings import Findings

FEW = 200
"""Connections that are judged one by one; of more, columns are read, for which numpy is loaded."""
ROWS = 50_000
"""Connections whose columns are in memory together."""
DISTURBED = (("syn_retransmissions", ">", 0.0), ("connection.close", "==", "unanswered"))
"""Conditions of a direction, each of which says that the handshake was disturbed: then its time is lost as well."""

Ranked = tuple[int, ...]
"""A connection's lost time, its payload, and its number as a negative: what connections are put in order by."""


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
    parts = list(verdict_parts(analysis))
    return Table({name: _masked(np.concatenate([part[name] for part in parts])) for name in VERDICT_COLUMNS})


def verdict_parts(
    analysis: Analysis, closely: Mapping[int, Verdict] | None = None, *, rows: int = ROWS
) -> Iterator[dict[str, NDArray[Any]]]:
    """The columns of `verdict_columns`, so many connections at a time; None where there is no value.

    Args:
        closely: verdicts on connections that are judged already.
    """
    known = judged_closely(analysis) if closely is None else closely
    situations = _Situations()
    ids = sorted(known)
    for start in range(0, len(analysis), rows):
        stop = min(start + rows, len(analysis))
        columns = _Part(analysis, start, stop).columns(situations)
        for id in _between(ids, start, stop):
            for name, values in columns.items():
                values[id - start] = getattr(known[id], name)
        yield columns


def set_apart(analysis: Analysis, limit: int, most: int) -> tuple[set[int], list[Ranked]] | None:
    """By packets alone the connections that may have lost time, and of those that lost none so many with most data.

    None where more than `most` may have.
    """
    apart = analysis._engine.apart(GROUPS_WEIGHED[0], GROUPS_WEIGHED[2], DISTURBED, limit, most)
    if apart is None:
        return None
    lossy, lossless = apart
    return set(lossy), [(0, payload_bytes, -id) for payload_bytes, id in lossless]


def rank(analysis: Analysis, limit: int, *, rows: int = ROWS) -> tuple[list[Ranked], list[Ranked]]:
    """By packets alone the connections that lost most time, so many of them, and all with a problem; in any order."""
    import numpy as np

    worst: list[Ranked] = []
    problems: list[Ranked] = []
    for start in range(0, len(analysis), rows):
        lost_ns, carried, is_problem = _weighed(analysis, start, min(start + rows, len(analysis)))
        ids = np.arange(start, start + len(lost_ns))
        rows_of = np.stack((lost_ns, carried, -ids), axis=1)
        problems += map(tuple, rows_of[is_problem].tolist())
        # No other can be among the worst.
        least_ns = np.partition(lost_ns, -limit)[-limit] if 0 < limit < len(lost_ns) else 0
        near = np.flatnonzero(lost_ns >= least_ns)
        order = near[np.lexsort((-ids[near], carried[near], lost_ns[near]))[-limit:]] if limit else ids[:0]
        worst = nlargest(limit, [*worst, *map(tuple, rows_of[order].tolist())])
    return worst, problems


def _weighed(analysis: Analysis, start: int, stop: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Of the connections from `start` to before `stop` the lost time, the payload, and whether there is a problem."""
    import numpy as np

    fields = ("syn_retransmissions", "payload_bytes", "acked_bytes", "unique_bytes")
    names = ["close", "sampled", *(f"{side}.{field}" for side in DIRECTIONS for field in fields)]
    table = {
        name: np.ma.filled(column, 0)
        for name, column in analysis.connections.table(names, start=start, stop=stop).items()
    }
    is_sampled = table["sampled"].astype(bool)
    is_again = [table[f"{side}.syn_retransmissions"] > 0 for side in DIRECTIONS]
    is_disturbed = is_again[0] | is_again[1] | (table["close"] == "unanswered")
    sums = analysis._engine.budget_sums(start, stop, GROUPS_WEIGHED).reshape(len(DIRECTIONS), len(GROUPS_WEIGHED), -1)
    losses = []
    for side, sums_ns in zip(DIRECTIONS, sums, strict=True):
        is_stalled = np.zeros(stop - start, dtype=bool)
        loss = weigh(sums_ns, is_disturbed=is_disturbed, is_stalled=is_stalled, is_sampled=is_sampled)
        # A stall at the end matters only where much was lost, though little of a long time: seldom.
        for place in np.flatnonzero((loss.lost_ns >= MIN_COST_NS) & ~loss.is_problem).tolist():
            stalled_by = analysis._engine.direction_value(start + place, side == DIRECTIONS[0], "stall_at_end")
            is_stalled[place] = stalled_by is not None
        losses.append(weigh(sums_ns, is_disturbed=is_disturbed, is_stalled=is_stalled, is_sampled=is_sampled))
    carried = [np.maximum(table[f"{side}.acked_bytes"], table[f"{side}.unique_bytes"]) for side in DIRECTIONS]
    there, back = losses
    is_back = worse(there, back, carried[1] > carried[0], np.where).astype(bool)
    payload = table["a_to_b.payload_bytes"] + table["b_to_a.payload_bytes"]
    return np.where(is_back, back.lost_ns, there.lost_ns), payload, there.is_problem | back.is_problem


def judged_closely(analysis: Analysis, found: Findings | None = None) -> dict[int, Verdict]:
    """The verdicts on the connections of which more is known than their packets' budget says."""
    found = analysis.findings if found is None else found
    return {
        id: judge_connection(analysis.connections[id], found.of(id)) for id in sorted(known_closely(analysis, found))
    }


def known_closely(analysis: Analysis, found: Findings) -> set[int]:
    """Numbers of the connections of which a rule or a host's snapshot says more than their packets' budget."""
    claimed = {each.connection for each in (*found, *found.known) if each.connection is not None and each.items_ns}
    return claimed | {match.connection for host in analysis.hosts for match in host.found}


def budget_columns(analysis: Analysis, start: int, stop: int) -> dict[str, dict[str, NDArray[np.int64]]]:
    """Of the connections from `start` to before `stop` the time budgets by packets alone, by direction and item."""
    spent = analysis._engine.budgets(start, stop).reshape(-1, len(DIRECTIONS), len(ITEMS))
    return {
        side: {item: spent[:, number, place] for place, item in enumerate(ITEMS)}
        for number, side in enumerate(DIRECTIONS)
    }


def _between(ids: list[int], start: int, stop: int) -> list[int]:
    from bisect import bisect_left

    return ids[bisect_left(ids, start) : bisect_left(ids, stop)]


def _column(values: list[Any]) -> NDArray[Any]:
    import numpy as np

    if values and not any(isinstance(each, str | None) for each in values):
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return _masked(column)


def _masked(values: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    if values.dtype != np.object_:
        return values
    return np.ma.masked_array(values, mask=[each is None for each in values.tolist()])


class _Side:
    """One direction of every connection."""

    FIELDS = (
        *("zero_window_episode_count", "zero_window_ns", "receive_window_max_bytes", "receive_window_mean_bytes"),
        *("queue_mean_ns", "rtt_min_ns", "path_rate_bps", "receive_window_initial_bytes", "initial_flight_bytes"),
        *("window_scale_state", "window_scale_disabled_by", "view", "syn_retransmissions", "unique_bytes"),
        *("acked_bytes", "missed_bytes", "data_segments", "retransmissions", "stall_at_end", "payload_bytes"),
        *("turns", "first_byte_p50_ns", "idle_ns"),
    )
    divided: Division
    gain: Gain

    def __init__(self, table: Mapping[str, NDArray[Any]], name: str, items: Mapping[str, NDArray[np.int64]]) -> None:
        import numpy as np

        self.table, self.name, self.items = table, name, items
        self.traits = traits_of(self.numbers, self.texts("window_scale_state") != "disabled", self.items)
        self.carried_bytes = np.maximum(self.numbers("acked_bytes"), self.numbers("unique_bytes"))
        self.is_syn_again = self.numbers("syn_retransmissions") > 0
        # What an opinion looks at, beside the limit.
        self.looks = [
            np.ma.getmaskarray(table[f"{name}.receive_window_max_bytes"]),
            ~np.ma.getmaskarray(table[f"{name}.receive_window_mean_bytes"]),
            self.numbers("receive_window_max_bytes") > 0,
            self.numbers("zero_window_episode_count") > 0,
            self.traits.is_slow,
            self.traits.is_mostly_closed,
            self.traits.is_mostly_recovering,
            self.traits.is_growing,
            self.traits.is_missed,
            self.traits.is_doubled,
            self.traits.is_queued,
            self.traits.is_read_late,
            self.traits.is_answering,
            self.numbers("turns") > 1,
            self.numbers("path_rate_bps") > 0,
        ]

    def divide(self, is_disturbed: NDArray[np.bool_], is_sampled: NDArray[np.bool_]) -> None:
        """Divide the time as the judge does without findings."""
        import numpy as np

        self.divided = divide(
            by_limit(self.items, self.traits.is_slow, np.where),
            {},
            is_disturbed=is_disturbed,
            is_stalled=self.texts("stall_at_end") != "",
            is_sampled=is_sampled,
            pick=np.where,
        )
        self.gain = self.gain_of(self.divided.first)

    def gain_of(self, limits: NDArray[np.int64]) -> Gain:
        """What lifting a limit of each, by its place in `ORDER`, would have gained."""
        import numpy as np

        carried = carried_of(self.numbers, np.ma.filled(self.table["path_rtt_ns"], 0))
        silent_ns = silent_by_limit(self.items, self.traits.is_slow, np.where)
        is_growing = self.traits.is_growing
        return gain_of(limits, self.divided.times_ns, ORDER, carried, is_growing, np.where, silent_ns)

    def numbers(self, field: str) -> NDArray[Any]:
        """A field; 0 where there is no value."""
        import numpy as np

        return np.ma.filled(self.table[f"{self.name}.{field}"], 0)

    def texts(self, field: str) -> NDArray[Any]:
        """A field; empty where there is no value."""
        import numpy as np

        values: NDArray[Any] = np.ma.filled(self.table[f"{self.name}.{field}"], "")
        return np.array([each or "" for each in values.tolist()]) if values.dtype == np.object_ else values


class _Part:
    """Connections `start` to `stop`, by their packets alone."""

    def __init__(self, analysis: Analysis, start: int, stop: int) -> None:
        import numpy as np

        self.analysis, self.start = analysis, start
        names = ["close", "sampled", "multipath", "initiator_known", "a_port", "b_port", "path_rtt_ns"]
        names += [f"{side}.{field}" for side in DIRECTIONS for field in _Side.FIELDS]
        table = analysis.connections.table(names, start=start, stop=stop)
        self.table = table
        self.is_sampled = np.ma.filled(table["sampled"], False).astype(bool)
        budgets = budget_columns(analysis, start, stop)
        self.sides = [_Side(table, side, budgets[side]) for side in DIRECTIONS]
        there, back = self.sides
        is_disturbed = there.is_syn_again | back.is_syn_again | (table["close"] == "unanswered")
        for side in self.sides:
            side.divide(is_disturbed, self.is_sampled)
        self.is_back_main = back.carried_bytes > there.carried_bytes
        self.is_back: NDArray[np.bool_] = worse(there.divided, back.divided, self.is_back_main, np.where).astype(bool)
        self.is_problem = there.divided.is_problem | back.divided.is_problem

    def of_chosen(self, values: list[NDArray[Any]]) -> NDArray[Any]:
        """Of each connection the direction that its verdict is on."""
        import numpy as np

        found: NDArray[Any] = np.where(self.is_back, values[1], values[0])
        return found

    def divided(self, name: str) -> NDArray[Any]:
        """A part of the chosen direction's division."""
        return self.of_chosen([getattr(side.divided, name) for side in self.sides])

    def columns(self, situations: _Situations) -> dict[str, NDArray[Any]]:
        """The columns; situations that are new are judged."""
        import numpy as np

        total_ns, first_ns = self.divided("total_ns"), self.divided("first_ns")
        also, lost_to = self.divided("also"), [np.stack(side.divided.lost_to_ns) for side in self.sides]
        also_ns = np.take_along_axis(self.of_chosen(lost_to), also[None], axis=0)[0] * (also != NONE)
        times_ns = [np.stack(side.divided.times_ns) for side in self.sides]
        also_time_ns = np.take_along_axis(self.of_chosen(times_ns), also[None], axis=0)[0]
        also_gained_ns = self.of_chosen([side.gain_of(side.divided.also).likely_ns for side in self.sides])
        also_ns = part_of(also_gained_ns, also_ns, np.maximum(also_time_ns, 1))
        shares = [ns / np.maximum(total_ns, 1) for ns in (first_ns, self.divided("second_ns"), also_ns)]
        share = shares[0]
        judged, place = self._judge(self._situation(share, also, situations), situations)
        columns = {
            name: np.array([getattr(verdict, name) for verdict, _ in judged], dtype=object)[place]
            for name in ("limit", "second_limit", "confidence", "owner", "side", "direction", "fix", "also")
        }
        likely_ns, low_ns, high_ns = (
            self.of_chosen([getattr(side.gain, name) for side in self.sides])
            for name in ("likely_ns", "low_ns", "high_ns")
        )
        answer_ns = self.of_chosen([side.numbers("first_byte_p50_ns") for side in self.sides])
        columns |= {
            "share": share,
            "cost_ns": likely_ns,
            "cost_low_ns": np.where(columns["confidence"] == "possible", 0, low_ns),
            "cost_high_ns": high_ns,
            "text": _texts([text for _, text in judged], place, shares, also_ns, answer_ns),
            "lost_ns": self.divided("lost_ns"),
            "is_problem": self.is_problem.copy(),
        }
        is_mendable = np.isin(columns["limit"].astype(str), list(MENDABLE))
        columns["named_ns"] = np.where(also != NONE, also_ns, np.where(is_mendable, likely_ns, columns["lost_ns"]))
        return {name: columns[name] for name in VERDICT_COLUMNS}

    def _situation(self, share: NDArray[Any], also: NDArray[Any], situations: _Situations) -> NDArray[np.int64]:
        """A number for all that decides what the judge says beside numbers."""
        import numpy as np

        table = self.table
        services = (table["a_port"] < WELL_KNOWN_PORTS).astype(int) + (table["b_port"] < WELL_KNOWN_PORTS)
        is_role_known = table["initiator_known"] | (services == 1)
        there, back = self.sides
        looks: list[NDArray[Any]] = [self.of_chosen(list(each)) for each in zip(there.looks, back.looks, strict=True)]
        looks += [
            situations.codes(self.of_chosen([side.texts(field) for side in self.sides]))
            for field in ("view", "window_scale_state", "window_scale_disabled_by")
        ]
        looks += [self.divided("first"), self.divided("second"), also, situations.codes(table["close"])]
        looks += [there.is_syn_again, back.is_syn_again, self.is_back, share < 0.5, self.is_sampled]
        looks += [
            np.ma.filled(table["multipath"], False).astype(bool),
            self.divided("is_problem").astype(bool),
            self.divided("total_ns") > 0,
            (there.carried_bytes > 0) | (back.carried_bytes > 0),
        ]
        looks += [is_role_known, self.is_back_main & ~is_role_known]
        return situations.combine(looks)

    def _judge(
        self, situation: NDArray[np.int64], situations: _Situations
    ) -> tuple[list[tuple[Verdict, str]], NDArray[Any]]:
        """What the judge says of one connection of each situation, and the place in that of each connection."""
        import numpy as np

        kinds, first, place = np.unique(situation, return_index=True, return_inverse=True)
        for kind, id in zip(kinds.tolist(), first.tolist(), strict=True):
            if kind not in situations.judged:
                connection = self.analysis.connections[self.start + id]
                situations.judged[kind] = judge_worded(connection, DIRECTIONS[int(self.is_back[id])])
        return [situations.judged[kind] for kind in kinds.tolist()], place


class _Situations:
    """What the judge said of one connection of each situation.

    Attributes:
        judged: by the number of the situation.
    """

    CODE_BITS = 4
    BITS, FEW_BITS = 62, 24
    """Of a number, and of one of combinations that were met."""

    def __init__(self) -> None:
        self.judged: dict[int, tuple[Verdict, str]] = {}
        self._codes: dict[str, int] = {}
        self._met: dict[int, int] = {}

    def codes(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """A field of few different texts as numbers, the same in each part of a capture."""
        import numpy as np

        kinds, place = np.unique(values.astype(str), return_inverse=True)
        known = self._codes
        numbers = np.array([known.setdefault(kind, len(known)) for kind in kinds.tolist()], dtype=np.int64)
        return numbers[place]

    def combine(self, looks: list[NDArray[Any]]) -> NDArray[np.int64]:
        """One number for each combination of truth values and codes."""
        import numpy as np

        combined = np.zeros(len(looks[0]), dtype=np.int64)
        bits = 0
        for look in looks:
            width = 1 if look.dtype == np.bool_ else self.CODE_BITS
            assert int(look.max(initial=0)) >> width == 0, "more kinds than the bits of a code tell apart"
            if bits + width > self.BITS:
                combined, bits = self._numbered(combined), self.FEW_BITS
            combined = (combined << width) | look
            bits += width
        return combined

    def _numbered(self, combined: NDArray[np.int64]) -> NDArray[np.int64]:
        """The combinations so far by the order in which they were met: few of all that may be there are."""
        import numpy as np

        kinds, place = np.unique(combined, return_inverse=True)
        known = self._met
        numbers = np.array([known.setdefault(kind, len(known)) for kind in kinds.tolist()], dtype=np.int64)
        assert len(known) >> self.FEW_BITS == 0, "more situations than a number tells apart"
        return numbers[place]


def _texts(
    templates: list[str],
    place: NDArray[Any],
    shares: list[NDArray[Any]],
    also_ns: NDArray[Any],
    answer_ns: NDArray[Any],
) -> NDArray[Any]:
    """The verdicts' texts: each that is written the same is written once."""
    import numpy as np

    # Shares are written in whole percents; of one below half a percent, that it is not 0.
    shown = [(np.rint(each * 100) * 2 + (each > 0)).astype(np.int64).tolist() for each in shares]
    known: dict[tuple[int, ...], str] = {}
    texts = np.empty(len(place), dtype=object)
    has_answer = np.array(["{answer}" in each for each in templates])[place]
    told_ns = np.where(has_answer, answer_ns, 0)
    for row, key in enumerate(zip(place.tolist(), *shown, also_ns.tolist(), told_ns.tolist(), strict=True)):
        text = known.get(key)
        if text is None:
            share, second_share, also_share = (float(each[row]) for each in shares)
            numbers = numbers_text(share, second_share, key[-2], also_share, key[-1])
            text = known[key] = templates[key[0]].format(**numbers)
        texts[row] = text
    return texts
