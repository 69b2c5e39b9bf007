"""The tables of docs/accuracy.md: `python -m simulator.table [--runs N] [--page FILE]`, from the folder tests.

Every combination of SACK, timestamps and wrap-around is simulated N times and captured at both ends. The tables are
printed, or replace those at the end of a page.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from simulator.tally import GRID, LABELS, RECEIVER, SENDER, Options, Tally, simulate_many, tally

RUNS = 2000
HEADING = "#### "
TITLES = {SENDER: "captured at the sender", RECEIVER: "captured at the receiver"}

Tallies = dict[Options, dict[str, Tally]]


def measure(runs: int, *, first_seed: int = 0) -> Tallies:
    """Simulate and judge, with separate seeds for every combination."""
    return {
        options: tally(simulate_many(options, range(first_seed + place * runs, first_seed + (place + 1) * runs)))
        for place, options in enumerate(GRID)
    }


def render(tallies: Tallies) -> Iterator[str]:
    """Render a table per vantage point and wrap-around, a row per cause, a column per choice of SACK and timestamps."""
    for vantage, title in TITLES.items():
        for wrap in (False, True):
            columns = [options for options in tallies if options.wrap is wrap]
            yield f"{HEADING}{title[0].upper()}{title[1:]}, {'with' if wrap else 'without'} wrap-around"
            yield ""
            yield f"| cause | {' | '.join(_describe(options) for options in columns)} |"
            yield f"|---|{'---|' * len(columns)}"
            counted = [tallies[options][vantage] for options in columns]
            for label in LABELS:
                yield f"| `{label}` | {' | '.join(_cell(one, label) for one in counted)} |"
            yield f"| sent again without a trace | {' | '.join(_share(one.hidden, one.resent) for one in counted)} |"
            yield f"| duplicated, recognised | {' | '.join(_percent(one.duplicates_recognised) for one in counted)} |"
            yield ""


def _describe(options: Options) -> str:
    return f"{'SACK' if options.sack else 'no SACK'}, {'timestamps' if options.timestamps else 'no timestamps'}"


def _cell(one: Tally, label: str) -> str:
    if not one.true(label) and not one.said(label):
        return "–"
    return f"{_percent(one.precision(label))} / {_percent(one.recall(label))} of {one.true(label):,}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


def _share(count: int, total: int) -> str:
    return f"{count:,} of {total:,}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Print the tables of tcpwin/docs/accuracy.md.")
    parser.add_argument("--runs", type=int, default=RUNS, help="of each combination; seen from both ends")
    parser.add_argument("--page", type=Path, help="write into this page, from its first table of figures on")
    arguments = parser.parse_args()
    tables = "\n".join(render(measure(arguments.runs)))
    if arguments.page is None:
        print(tables)
    else:
        before = arguments.page.read_text(encoding="utf8").partition(HEADING)[0]
        arguments.page.write_text(before + tables, encoding="utf8")


if __name__ == "__main__":
    main()
