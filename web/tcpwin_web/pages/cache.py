"""A cache of rendered parts of pages, which depend only on the results and the query."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable

from markupsafe import Markup

MOST_CHARACTERS = 16 << 20


class PageCache:
    """The most recently used parts."""

    def __init__(self, most_characters: int = MOST_CHARACTERS) -> None:
        self._parts: OrderedDict[Hashable, Markup] = OrderedDict()
        self._most_characters = most_characters
        self._characters = 0

    async def get(self, key: Hashable, draw: Callable[[], Awaitable[Markup]]) -> Markup:
        """Return the part for a key, rendering it if necessary; the key must contain everything the part depends on."""
        part = self._parts.get(key)
        if part is None:
            part = await draw()
            self._put(key, part)
        else:
            self._parts.move_to_end(key)
        return part

    def _put(self, key: Hashable, part: Markup) -> None:
        self._characters += len(part) - len(self._parts.pop(key, ""))
        self._parts[key] = part
        while self._characters > self._most_characters:
            _, oldest = self._parts.popitem(last=False)
            self._characters -= len(oldest)
