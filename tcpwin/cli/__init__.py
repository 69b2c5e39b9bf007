"""The command line: one command, one file."""

from tcpwin.cli.program import main

__all__ = ["main"]
