"""Look at captures for progress streams: one query for all of them at a time, however many there are."""

import asyncio
from collections.abc import Mapping

from tcpwin_web.captures import Captures, NotFoundError
from tcpwin_web.slots import Caller, set_caller
from tcpwin_web.storage.models import Capture


class Watch:
    """The captures that streams ask about, until the next query."""

    def __init__(self, captures: Captures) -> None:
        self._captures = captures
        self._wanted: set[str] = set()
        self._next: asyncio.Task[Mapping[str, Capture]] | None = None
        self._querying = asyncio.Lock()

    async def look(self, capture_id: str) -> Capture:
        """Return a capture with its files, as it is now.

        Raises:
            NotFoundError: no capture has this id.
        """
        self._wanted.add(capture_id)
        if self._next is None:
            self._next = asyncio.create_task(self._query())
        # A client that disconnects must not cancel the query, because others wait for it, too.
        found = await asyncio.shield(self._next)
        if capture_id not in found:
            raise NotFoundError(capture_id)
        return found[capture_id]

    async def _query(self) -> Mapping[str, Capture]:
        set_caller(Caller("service", is_owner=True))
        async with self._querying:
            wanted, self._wanted, self._next = self._wanted, set(), None
            return await self._captures.get_all(wanted)
