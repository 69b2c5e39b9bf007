"""Stand-in for the compiled engine, which Python prefers: this file runs only if there is none."""

from pathlib import Path

raise ImportError(
    f"{Path(__file__).parent} has tcpwin's sources, but no compiled engine. Leave that folder to use an installed "
    "tcpwin, or build it there: pip install -e ."
)
