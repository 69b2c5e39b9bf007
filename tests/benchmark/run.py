"""Compare tcpwin's speed with other tools: python tests/benchmark/run.py [--quick] [--markdown | --json].

Makes its captures, runs every tool in turn, round by round, and compares CPU time pair by pair. Exit 0: every "must"
holds; 1: one is missed; 2: wrong usage, a missing program, or a run that failed.
"""

import argparse
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench import captures as capture_files
from bench import measure, report, rows, tools

# In each round, in this order, which rotates by one every round.
PLAN = {
    "small": [tools.TCPWIN_ONE, tools.TCPWIN, tools.PYTHON],
    "A": [tools.TCPWIN_ONE, tools.TCPWIN, tools.TCPDUMP],
    "E": [tools.TCPWIN_ONE],
    "A.gz": [tools.TCPWIN_ONE, tools.INFLATE],
    "B": [
        *(tools.TCPWIN_ONE, tools.TCPWIN_TWO, tools.TCPWIN, tools.TCPTRACE_ALL, tools.TCPDUMP),
        *(tools.EARLIER, tools.CSV, tools.PARQUET),
    ],
    "B.gz": [tools.TCPWIN, tools.GZIP],
    "C": [tools.TCPWIN_ONE, tools.TCPWIN, tools.TCPTRACE_ALL],
    "D": [
        *(tools.TCPWIN_ONE, tools.TCPWIN_TWO, tools.TCPWIN, tools.TCPTRACE),
        *(tools.LIBRARY, tools.POLARS, tools.JSON),
    ],
    **{name: [tools.TCPWIN] for name in capture_files.SHAPED},
}
# A dozen seconds of CPU per run, up to two minutes; and captures of which only memory is judged.
SLOW = {(tools.TCPTRACE, "D"), (tools.TSHARK, "B"), (tools.TSHARK, "A"), (tools.JSON, "D")}
SLOW |= {(tools.TCPWIN, name) for name in capture_files.SHAPED}
# Runs of tens of ms are repeated within their round.
REPEATS = {"A": 10, "A.gz": 5, "E": 10, "small": 10}
# tcptrace keeps 8 KB for each of D's connections.
MEMORY_WANTED_KIB = 9 * (1 << 20)


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run.py", description="Time tcpwin beside tshark, tcptrace and tcpdump.")
    folder = Path(tempfile.gettempdir()) / "tcpwin-bench"
    parser.add_argument("--dir", type=Path, default=folder, help="folder of the captures (%(default)s)")
    parser.add_argument("--tcpwin", default=tools.own_tcpwin(), help="the command to measure (%(default)s)")
    parser.add_argument("--earlier", default="", help="the command of an earlier version, to compare with on B")
    parser.add_argument("--rounds", type=_positive, default=5, help="rounds (%(default)s)")
    parser.add_argument("--slow-rounds", type=_positive, default=2, help="rounds of the slow peers (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="tshark on A (not judged) instead of B")
    parser.add_argument("--prepare", action="store_true", help="make the captures and stop")
    parser.add_argument(
        "--of",
        action="append",
        default=[],
        type=_other,
        metavar="NAME=FILE",
        help="another generator's capture in place of one of ours, as D=FILE:400000 where something happens in so many"
        " of its connections; may be repeated",
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print every run and row as JSON")
    output.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    return parser.parse_args(arguments)


def _other(text: str) -> tuple[str, Path, int | None]:
    name, equals, path = text.partition("=")
    path, colon, eventful = path.partition(":")
    if name not in PLAN or not equals or not path or (colon and not eventful.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a capture's name with a file, as B=FILE")
    return name, Path(path), int(eventful) if colon else None


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def plan_rounds(options: argparse.Namespace) -> Iterator[tuple[int, str, str]]:
    """Yield (round, capture, tool) of every run, interleaved."""
    for index in range(options.rounds):
        for capture, fixed in PLAN.items():
            judged = "A" if options.quick else "B"
            names = [*fixed, tools.TSHARK] if capture == judged else fixed
            names = [name for name in names if name != tools.EARLIER or options.earlier]
            for place in range(len(names)):
                tool = names[(place + index) % len(names)]
                if (tool, capture) not in SLOW or index < options.slow_rounds:
                    yield index, capture, tool


def measure_all(
    options: argparse.Namespace,
    tcpwin: list[str],
    captures: Mapping[str, capture_files.Capture],
    by_name: Mapping[str, tools.Tool],
) -> dict[tuple[str, str], list[measure.Run]]:
    runs: dict[tuple[str, str], list[measure.Run]] = {}
    for index, capture, name in plan_rounds(options):
        if (name, capture) == (tools.TCPWIN_ONE, "small"):
            version = measure.run_repeatedly([*tcpwin, "--version"], REPEATS["small"])
            runs.setdefault((name, rows.VERSION), []).append(version)
        tool = by_name[name]
        command = tool.command(captures[capture].path)
        times = 1 if (name, capture) in SLOW else REPEATS.get(capture, 1)
        run = measure.run_repeatedly(command, times, tool.environment)
        runs.setdefault((name, capture), []).append(run)
        peak_mib = run.peak_bytes // capture_files.MIB
        progress = f"round {index + 1}  {capture:6} {name:18} {run.cpu_s:8.3f} s CPU {peak_mib:6} MiB"
        print(progress, file=sys.stderr, flush=True)
    return runs


def warn_of_little_memory() -> None:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:") and int(line.split()[1]) < MEMORY_WANTED_KIB:
            print("run.py: less than 9 GiB of memory are free: tcptrace on D and tshark on B may swap", file=sys.stderr)


def main() -> int:
    options = parse_arguments()
    tcpwin = shlex.split(options.tcpwin)
    if not tcpwin:
        print("run.py: --tcpwin names no command", file=sys.stderr)
        return 2
    missing = tools.missing_programs(["cargo"] if options.prepare else [tcpwin[0], *tools.PEERS, "cargo"])
    if missing:
        print(f"run.py: not found: {', '.join(missing)}; install what is missing first", file=sys.stderr)
        return 2
    try:
        others = {name: capture_files.other(path, eventful) for name, path, eventful in options.of}
        captures = capture_files.prepare(options.dir, PLAN.keys() - others.keys()) | others
        if options.prepare:
            return 0
        inflate = capture_files.build_example("inflate")
        by_name = tools.all_tools(tcpwin, shlex.split(options.earlier), inflate, options.dir)
        warn_of_little_memory()
        capture_files.warm(captures.values())
        runs = measure_all(options, tcpwin, captures, by_name)
    except (capture_files.CaptureError, measure.RunError, OSError) as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 2
    table = rows.all_rows(runs, captures)
    if options.json:
        print(report.render_json(table, runs, captures, tools.versions(tcpwin)))
    elif options.markdown:
        print(report.render_markdown(table, runs, captures))
    else:
        print(report.render_text(table, runs, captures))
    return report.judge("run.py", table)


if __name__ == "__main__":
    sys.exit(main())
