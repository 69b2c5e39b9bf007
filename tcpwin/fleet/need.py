"""Packages of the `fleet` extra, checked when they are needed."""

from __future__ import annotations

from importlib.util import find_spec

from tcpwin.errors import OutputError


def need(package: str) -> None:
    """Raise an error if a needed package is missing.

    Raises:
        OutputError: it is not installed.
    """
    if find_spec(package) is None:
        raise OutputError(f"fleet needs {package}: pip install 'tcpwin[fleet]'")
