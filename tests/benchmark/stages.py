"""Print what each stage of the engine costs per packet: python tests/benchmark/stages.py [--release | --write].

Needs cargo and valgrind. `--write` makes what was measured the budget that `test_stages.py` holds changes to.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from bench import stages, tools


def main() -> int:
    parser = argparse.ArgumentParser(prog="stages.py", description="Count instructions and cache misses per packet.")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--release", action="store_true", help="of the optimised build, as installed")
    choice.add_argument("--write", action="store_true", help="write the budget")
    options = parser.parse_args()
    if missing := tools.missing_programs(["cargo", "valgrind"]):
        print(f"missing: {', '.join(missing)}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        measured = stages.measure(Path(folder), release=options.release)
    for shape, costs in measured.items():
        print(f"{shape:<20} instructions  D1 misses  L2 misses")
        for stage, cost in [*costs.items(), ("total", stages.total(costs))]:
            print(f"  {stage:<18} {cost.instructions:>12,.0f}  {cost.d1_misses:>9.2f}  {cost.l2_misses:>9.2f}")
    if options.write:
        stages.write_budget(measured)
    return 0


if __name__ == "__main__":
    sys.exit(main())
