"""The command line: one file per command."""

from __future__ import annotations

import sys


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its status."""
    words = sys.argv[1:] if arguments is None else arguments
    if words in (["--version"], ["-V"]) and _print_version():
        return
    from tcpwin.cli import program

    program.main(arguments)


def _print_version() -> bool:
    """Print the version without loading click, and return whether it was written; `program` reports any error."""
    from tcpwin.version import __version__

    try:
        print(f"tcpwin {__version__}", flush=True)
    except (OSError, AttributeError, ValueError):
        return False
    return True


__all__ = ["main"]
