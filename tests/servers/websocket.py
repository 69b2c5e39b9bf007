"""A WebSocket on which both sides send at any time."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from servers.network import PORT, SERVER

MESSAGES, INTERVAL_S = 120, 0.004


async def send(connection: Any) -> None:
    """Send messages at intervals while others come in."""

    async def listen() -> None:
        for _ in range(MESSAGES):
            await connection.recv()

    listening = asyncio.create_task(listen())
    for number in range(MESSAGES):
        await connection.send(bytes(100 + number))
        await asyncio.sleep(INTERVAL_S)
    await listening


async def serve() -> None:
    """Accept clients until the end."""
    from websockets.asyncio.server import serve

    async with serve(send, SERVER, PORT, compression=None):
        await asyncio.Future()


async def talk() -> None:
    """Exchange messages with the server."""
    from websockets.asyncio.client import connect

    async with connect(f"ws://{SERVER}:{PORT}", compression=None, proxy=None) as connection:
        await send(connection)


def start(folder: Path) -> list[subprocess.Popen[Any]]:  # noqa: ARG001 - as every kind
    """Run the server."""
    code = "import asyncio; from servers.websocket import serve; asyncio.run(serve())"
    server = subprocess.Popen([sys.executable, "-c", code])
    time.sleep(1)
    return [server]


def ask(folder: Path) -> dict[str, Any]:  # noqa: ARG001 - as every kind
    """Talk with the server."""
    asyncio.run(talk())
    return {"messages": MESSAGES}
