"""Questions of agents about captures, by the Model Context Protocol: small answers, each with the frames that prove it.

In: a folder of captures. Out: a server of tools that reads this folder and, unless it is told where to, writes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpwin.lazy import loader

if TYPE_CHECKING:
    from tcpwin.agents.folder import Folder
    from tcpwin.agents.server import serve

_HOMES = {
    "folder": ("Folder",),
    "server": ("serve",),
}

__all__ = ["Folder", "serve"]

__getattr__ = loader(__name__, _HOMES)
