"""Load `tcpwin serve` on loopback: python tests/benchmark/serve.py [--quick] [--markdown | --json].

Starts the service in a separate folder, runs six loads one after another, and ends it. Exit 0: every "must" holds; 1:
one is missed; 2: wrong usage, or the service failed.
"""

import argparse
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from bench import browser, crowd, loads, report, tools
from bench import captures as capture_files
from bench.measure import RunError
from bench.rows import Row
from bench.served import ServiceError, serve

LOADS = ("first-page", "pages", "series", "browser", "uploads", "crowd")


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="serve.py", description="Load tcpwin serve on loopback.")
    folder = Path(tempfile.gettempdir()) / "tcpwin-bench"
    parser.add_argument("--dir", type=Path, default=folder, help="folder of the captures (%(default)s)")
    parser.add_argument("--tcpwin", default=tools.own_tcpwin(), help="the command to measure (%(default)s)")
    parser.add_argument("--only", action="append", choices=LOADS, help="this load, may be repeated (all)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of the first page (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="small captures, few of them: whether it works at all")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print rows and machine as JSON")
    output.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    return parser.parse_args(arguments)


def measure_all(options: argparse.Namespace, tcpwin: Sequence[str], folder: Path) -> list[Row]:
    large, larger, small = ("small",) * 3 if options.quick else ("A", "B", "small")
    count, rounds, at_once, size_bytes = (5, 2, 5, 4000) if options.quick else (1000, 40, 50, 10_000_000)
    who = crowd.Crowd(2, 4, 5, 3) if options.quick else crowd.Crowd()
    needed = {
        "first-page": large,
        "pages": small,
        "series": larger,
        "browser": larger,
        "uploads": large,
        "crowd": large,
    }
    asked = options.only or LOADS
    made = capture_files.prepare(options.dir, {needed[name] for name in asked})
    files = {name: each.path for name, each in made.items()}
    wanted: dict[str, Callable[..., list[Row]]] = {
        "first-page": lambda served: loads.first_page(served, tcpwin, files[large], folder, options.rounds),
        "pages": lambda served: loads.pages(served, files[small], count, rounds),
        "series": lambda served: loads.series(served, files[larger], rounds),
        "browser": lambda served: browser.connections(served, files[larger], rounds),
        "uploads": lambda served: loads.uploads_at_once(served, files[large], folder, at_once, size_bytes),
        "crowd": lambda served: crowd.attacked(served, files[large], folder, size_bytes // 10, who),
    }
    rows = []
    for name in asked:
        print(f"{name} …", file=sys.stderr, flush=True)
        with serve(tcpwin, folder / name) as served:
            rows += wanted[name](served)
        shutil.rmtree(folder / name)
    return rows


def main() -> int:
    options = parse_arguments()
    tcpwin = shlex.split(options.tcpwin)
    try:
        with tempfile.TemporaryDirectory(prefix="tcpwin-serve-") as folder:
            rows = measure_all(options, tcpwin, Path(folder))
    except (capture_files.CaptureError, RunError, ServiceError, OSError) as error:
        print(f"serve.py: {error}", file=sys.stderr)
        return 2
    machine = report.describe_machine()
    if options.json:
        values = [{**asdict(row), "value": row.value, "holds": row.holds} for row in rows]
        print(json.dumps({"machine": machine, "load": os.getloadavg(), "rows": values}, indent=1))
    else:
        print(report.render_rows(rows, as_markdown=options.markdown))
        print(f"\n{machine['processor']}, {machine['cores']} cores, Linux {machine['kernel']};", end=" ")
        print(f"load of the machine during the last minute: {os.getloadavg()[0]:.1f}")
    return report.judge("serve.py", rows)


if __name__ == "__main__":
    sys.exit(main())
