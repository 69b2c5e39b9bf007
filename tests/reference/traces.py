"""Write the shipped traces from the bundles of `tcpwin lab run --set published --no-capture -o FOLDER`.

python tests/reference/traces.py FOLDER

A run with a bundle in captures/reference uses that one; without a bundle in the folder it keeps its trace.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tcpwin.reference import read_trace, references, trace, write_traces

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "captures" / "reference"
OUT = ROOT / "tcpwin" / "reference" / "traces"


def bundle_of(folder: Path, reference: str, run: str) -> Path:
    """Return where `tcpwin lab run` writes the run: lab-oscil-0.3ms/170p2-stock is oscil-0ms-170p2-stock.zip."""
    scenario = reference.removeprefix("lab-").replace("0.3ms", "0ms")
    return folder / f"{scenario}-{run}.zip"


def main(folder: Path) -> None:
    """Write a file for each lab reference."""
    OUT.mkdir(exist_ok=True)
    for reference in references().values():
        if not reference.name.startswith("lab-"):
            continue
        found = {}
        for run in reference.runs:
            places = (bundle_of(each, reference.name, run.name) for each in (SHIPPED, folder))
            bundle = next((each for each in places if each.exists()), None)
            known = trace(run) if bundle is None else read_trace(bundle)
            if known is not None:
                found[run.name] = known
        if found:
            with (OUT / f"{reference.name}.csv").open("w", encoding="ascii", newline="") as out:
                write_traces(found, out)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
