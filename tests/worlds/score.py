"""How often tcpwin names the limit whose lifting gains most, on drawn worlds at both ends, compared with other tools.

Takes a folder of bundles of drawn worlds (``world-SEED-NUMBER-stock.zip``, as `tcpwin lab worlds` names them), and the
truths in this folder. Prints the tables of tcpwin/docs/worlds.md, or with ``--json`` a row for each world and end. From
the folder ``tests``: ``python -m worlds.score FOLDER [--json]``. tcptrace and tshark are used if installed.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from worlds.owners import changed_by, expected_owners, gains_of, is_fix_right
from worlds.peers import by_chronographs, by_tcptrace, by_tshark, groups_of
from worlds.truths import SEEDS, Truth, read_truths

import tcpwin
from tcpwin.lab import world
from tcpwin.limits import Verdict

ENDS = ("sender", "receiver")
CERTAIN = "certain"
LIKE = 1.5
"""A cost within this factor of the gain is right; so is one within `NEAR` of the duration."""
CONGESTION_CONTROL = "net.ipv4.tcp_congestion_control"
NEAR = 0.1


@dataclass(frozen=True)
class Answer:
    """A tool's answer for one capture: the remaining limits, and the rest if it gives it.

    `changed`: the limits that its fix lifts.
    """

    limits: tuple[str, ...]
    confidence: str = ""
    cost_ns: int | None = None
    owner: str = ""
    changed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """One world at one end.

    Attributes:
        owners: who can lift those that gain about most.
        gains_ns: of each limit, the most that lifting it gained.
        answers: by tool: ``packets`` and ``snapshots`` are tcpwin's.
        algorithm: the sender's congestion control, as drawn.
        reported: the one tcpwin reads from the packets; empty if it reports none.
    """

    seed: int
    number: int
    story: str
    end: str
    limit: str
    alike: tuple[str, ...]
    owners: tuple[str, ...]
    completion_ns: int
    gains_ns: dict[str, int]
    answers: dict[str, Answer]
    algorithm: str = ""
    reported: str = ""

    def is_right(self, tool: str) -> bool:
        """Return whether a remaining limit gains about most."""
        return bool(set(self.answers[tool].limits) & set(self.alike))

    def is_owner_right(self, tool: str) -> bool:
        """Return whether the owner can lift a limit that gains about most."""
        return self.answers[tool].owner in self.owners

    def is_fix_right(self, tool: str) -> bool:
        """Return whether the fix changes what lifting gained from."""
        return is_fix_right(self.answers[tool].changed, self.alike, self.gains_ns, self.completion_ns)

    def is_near(self, tool: str) -> bool:
        """Return whether the cost is about the gain of lifting the named limit."""
        answer = self.answers[tool]
        gained_ns = max(0, self.gains_ns.get(answer.limits[0], 0))
        cost_ns = answer.cost_ns or 0
        is_like = gained_ns / LIKE <= cost_ns <= gained_ns * LIKE
        return is_like or abs(cost_ns - gained_ns) <= NEAR * self.completion_ns


def rows_of(bundles: Path, seed: int) -> list[Row]:
    """Return the rows of every world of a seed with a bundle."""
    rows = []
    for truth in read_truths(seed):
        bundle = bundles / f"{world(seed, truth.number).name}-stock.zip"
        if bundle.exists():
            rows += _world(bundle, truth)
    return rows


def _world(bundle: Path, truth: Truth) -> Iterable[Row]:
    result = truth.result
    with tempfile.TemporaryDirectory() as name, zipfile.ZipFile(bundle) as members:
        members.extractall(name)
        folder = next(Path(name).iterdir())
        samples = (folder / "ss_sender.txt").read_text(encoding="utf8")
        for end in ENDS:
            capture = folder / f"{end}.pcap.gz"
            connection = _largest(tcpwin.analyze(capture))
            answers = {
                "packets": _answer(connection.verdict),
                "snapshots": _answer(_largest(tcpwin.analyze(bundle, capture=capture.name)).verdict),
            }
            if end == "sender":
                answers["ss"] = Answer(tuple(sorted(by_chronographs(samples, result.base.completion_ns))))
            for tool, ask in (("tcptrace", by_tcptrace), ("tshark", by_tshark)):
                if shutil.which(tool):
                    answers[tool] = Answer(tuple(sorted(ask(capture))))
            yield Row(
                truth.seed,
                truth.number,
                truth.story,
                end,
                result.limit,
                tuple(result.alike),
                expected_owners(result),
                result.base.completion_ns,
                gains_of(result),
                answers,
                truth.drawn["sysctl"][CONGESTION_CONTROL],
                connection.b_to_a.sender_algorithm or "",
            )


def _largest(analysis: tcpwin.Analysis) -> tcpwin.Connection:
    return max(analysis.connections, key=lambda each: each.b_to_a.unique_bytes)


def _answer(verdict: Verdict) -> Answer:
    return Answer((verdict.limit,), verdict.confidence, verdict.cost_ns, verdict.owner, changed_by(verdict))


def summary(rows: Sequence[Row]) -> str:
    """Return a table: limit, owner and fix right, certain and wrong, costs, by end and tool."""
    lines = [
        "| at the | by | worlds | right | owner right | fix right | certain and wrong | cost right |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for end in ENDS:
        mine = [row for row in rows if row.end == end]
        for tool, name in (("packets", "tcpwin, packets alone"), ("snapshots", "tcpwin, with snapshots")):
            counts = (
                sum(row.is_right(tool) for row in mine),
                sum(row.is_owner_right(tool) for row in mine),
                sum(row.is_fix_right(tool) for row in mine),
                sum(row.answers[tool].confidence == CERTAIN and not row.is_right(tool) for row in mine),
                sum(row.is_near(tool) for row in mine),
            )
            cells = " | ".join(_of(count, len(mine)) for count in counts)
            lines.append(f"| {end} | {name} | {len(mine)} | {cells} |")
    return "\n".join(lines)


def compare_tools(rows: Sequence[Row]) -> str:
    """Return a table: whose limit each tool's output names: receiver, network, application or send buffer."""
    tools = {
        "packets": "tcpwin, packets alone",
        "snapshots": "tcpwin, with snapshots",
        "ss": "`ss`: busy, rwnd_limited, sndbuf_limited",
        "tcptrace": "tcptrace",
        "tshark": "tshark",
    }
    lines = ["| by | at the sender | at the receiver |", "|---|---|---|"]
    for tool, name in tools.items():
        cells = []
        for end in ENDS:
            mine = [row for row in rows if row.end == end and tool in row.answers]
            right = sum(bool(groups_of(row.answers[tool].limits) & set(row.alike)) for row in mine)
            cells.append(_of(right, len(mine)) if mine else "")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def confusion(rows: Sequence[Row], end: str, tool: str) -> str:
    """Return a table: the limit whose lifting gains most against the limit named; equal gains count as the best."""
    counts = Counter(
        (named if named in row.alike else row.limit, named)
        for row in rows
        if row.end == end
        for named in row.answers[tool].limits
    )
    truths = sorted({truth for truth, _ in counts})
    names = sorted({named for _, named in counts})
    lines = [f"| gains most \\ named | {' | '.join(names)} |", f"|---{'|---' * len(names)}|"]
    for truth in truths:
        cells = [
            f"**{count}**" if truth == name else str(count or "") for name in names for count in [counts[truth, name]]
        ]
        lines.append(f"| {truth} | {' | '.join(cells)} |")
    return "\n".join(lines)


def algorithms(rows: Sequence[Row], end: str) -> str:
    """Return a table of the sender's congestion control as drawn against the one reported from packets."""
    counts = Counter((row.algorithm, row.reported) for row in rows if row.end == end)
    names = sorted({name for name, _ in counts} | {reported for _, reported in counts if reported})
    lines = [f"| sends by \\ reported | {' | '.join(names)} | none reported |", f"|---{'|---' * (len(names) + 1)}|"]
    for name in sorted({name for name, _ in counts}):
        cells = [
            f"**{count}**" if count and reported == name else str(count or "")
            for reported in names
            for count in [counts[name, reported]]
        ]
        lines.append(f"| {name} | {' | '.join(cells)} | {counts[name, '']} |")
    return "\n".join(lines)


def _of(part: int, whole: int) -> str:
    return f"{part} ({100 * part / whole:.0f} %)" if whole else "0"


def main(arguments: Sequence[str]) -> int:
    """Print the tables of every seed that has bundles in the folder."""
    folders = [Path(word) for word in arguments if not word.startswith("--")]
    if len(folders) != 1 or not folders[0].is_dir():
        sys.stderr.write("worlds.score: name the folder of bundles\n")
        return 2
    found = {seed: rows for seed in SEEDS if (rows := rows_of(folders[0], seed))}
    if not found:
        sys.stderr.write(f"worlds.score: {folders[0]} holds no bundle of a world whose truth is known\n")
        return 2
    if "--json" in arguments:
        for rows in found.values():
            sys.stdout.writelines(f"{json.dumps(asdict(row))}\n" for row in rows)
        return 0
    for seed, rows in found.items():
        parts = [f"# Seed {seed}", summary(rows), compare_tools(rows)]
        parts += [f"{end}, congestion control\n\n{algorithms(rows, end)}" for end in ENDS]
        parts += [f"{end}, {tool}\n\n{confusion(rows, end, tool)}" for end in ENDS for tool in ("packets", "snapshots")]
        sys.stdout.write("\n\n".join(parts) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
