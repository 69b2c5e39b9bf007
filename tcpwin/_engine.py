"""Explain a missing engine: Python imports this file only if the compiled module is absent."""

from pathlib import Path

raise ImportError(
    f"{Path(__file__).parent} has tcpwin's sources, but no compiled engine. Leave that folder to use an installed "
    "tcpwin, or build it there: pip install -e ."
)
