"""The command line: one command, one file."""

from tcpwin.cli._main import main

__all__ = ["main"]
