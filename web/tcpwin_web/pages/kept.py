"""Drawn parts of pages, kept for whoever asks the same next: those that results and the question alone tell."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable

from markupsafe import Markup

MOST_CHARACTERS = 16 << 20


class Kept:
    """The parts that were wanted last."""

    def __init__(self, most_characters: int = MOST_CHARACTERS) -> None:
        self._parts: OrderedDict[Hashable, Markup] = OrderedDict()
        self._most_characters = most_characters
        self._characters = 0

    async def get(self, key: Hashable, draw: Callable[[], Awaitable[Markup]]) -> Markup:
        """What was drawn for a key, drawn now where it was not; the key says all that it is made of."""
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
