"""The command line: one file per command."""

from tcpwin.cli.program import main

__all__ = ["main"]
