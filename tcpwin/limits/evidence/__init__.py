"""What proves a finding: questions that several rules ask of the same packets, settings and samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpwin.lazy import loader

if TYPE_CHECKING:
    from tcpwin.limits.evidence.hosts import growth

_HOMES = {
    "hosts": ("growth",),
}

__all__ = [
    "growth",
]

__getattr__ = loader(__name__, _HOMES)
