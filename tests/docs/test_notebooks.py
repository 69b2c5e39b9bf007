"""The notebooks run from top to bottom in Jupyter, and produce the expected output."""

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from spread import some_by_day

FOLDER = Path(__file__).parents[2] / "notebooks"
SHOWN = {
    "first-answer": [
        "Limited by a slow reader on the client (93 % of the time, certain)",
        "'receiver_application'",
        "TW201",
    ],
    "over-time": ["'zero_window': 6.1", "application/vnd.plotly.v1+json", "flight_most", "closed for "],
    "many-connections": ["handshake_rtt_ns", "loss-1-percent.pcap.gz", "path_loss"],
    "hosts-and-changes": ["receiver", "unread_bytes", "receiver.tcp_rmem=32M: 30.1 s as before", "lift "],
}
"""Words that the outputs of each notebook contain."""


def test_every_notebook_is_here() -> None:
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == SHOWN.keys()


@pytest.mark.parametrize("name", SHOWN)
def test_stored_notebooks_have_no_outputs(name: str) -> None:
    kept = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf8"))
    cells = [cell for cell in kept["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)


@pytest.mark.parametrize("name", some_by_day(SHOWN, of=len(SHOWN)))
def test_a_notebook_runs(name: str) -> None:
    notebook: Any = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    client = NotebookClient(
        notebook, timeout=None, kernel_name="python3", resources={"metadata": {"path": str(FOLDER)}}
    )
    client.execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.get("name") == "stderr"]
    shown = "".join(output.get("text", "") + str(output.get("data", "")) for output in outputs)
    assert [words for words in SHOWN[name] if words not in shown] == []
    # A figure is drawn, because its text would be unreadable.
    assert all(len(output.get("text", "") + output.get("data", {}).get("text/plain", "")) < 5000 for output in outputs)
