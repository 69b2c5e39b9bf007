"""PostgreSQL, read a thousand rows to a fetch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from servers.postgres_by_row import fetch, start

__all__ = ["ask", "start"]
FETCH_ROWS = 1000


def ask(folder: Path) -> dict[str, Any]:
    """Read every row in one fetch."""
    return fetch(folder, FETCH_ROWS)
