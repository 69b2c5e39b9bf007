"""Packages of the `fleet` extra, each of which is asked for when it is needed."""

from __future__ import annotations

from importlib.util import find_spec

from tcpwin.errors import OutputError


def need(package: str) -> None:
    """Refuse what needs a package that is not there.

    Raises:
        OutputError: it is not installed.
    """
    if find_spec(package) is None:
        raise OutputError(f"fleet needs {package}: pip install 'tcpwin[fleet]'")
