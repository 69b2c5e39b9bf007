"""Places for work of one kind, handed out fairly: who asks for much does not keep others from their turn.

Each kind of work (uploads, answers, prints) has places of its own, so that one kind never waits for another. A place
goes to the caller who holds fewest, then to the one who was served longest ago. Knows no request: the caller is a
context variable, the service itself where nobody asked.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")

RETRY_SECONDS = 5


class BusyError(Exception):
    """There is no place, in words for who asked; it may be asked again."""


class GoneError(Exception):
    """Nobody waits for the answer any more."""


@dataclass(frozen=True, eq=False)
class Caller:
    """Who asks.

    Attributes:
        name: the same for all requests that share their turns; never shown.
        is_guest: came by a share link. Guests together have a share of the places.
        gone: set once nobody waits any more.
    """

    name: str
    is_guest: bool = False
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def await_unless_gone(self, future: "asyncio.Future[T]") -> T:
        """Wait for a future's result; cancel it where the caller goes first.

        Raises:
            GoneError: the caller went.
        """
        going = asyncio.ensure_future(self.gone.wait())
        try:
            await asyncio.wait((future, going), return_when=asyncio.FIRST_COMPLETED)
            if not future.done():
                raise GoneError
            return future.result()
        finally:
            going.cancel()
            if not future.done():
                future.cancel()


_caller: ContextVar[Caller | None] = ContextVar("caller", default=None)


def current_caller() -> Caller:
    """Who asks for what is being done here."""
    return _caller.get() or Caller("service")


def set_caller(caller: Caller) -> None:
    """From here on, in this task and those that it starts, this is who asks."""
    _caller.set(caller)


@dataclass(eq=False)
class _Waiting:
    caller: Caller
    number: int
    granted: "asyncio.Future[None]"


class Places:
    """So many places for work of one kind."""

    def __init__(self, count: int, *, each: int, guests: int, each_waiting: int, guests_waiting: int) -> None:
        """Make them.

        Args:
            each: most that one caller holds at the same time.
            guests: most that all guests hold together.
            each_waiting: most requests of one caller that wait; further ones are refused.
            guests_waiting: of all guests together.
        """
        self.count = count
        self._each, self._guests = each, guests
        self._each_waiting, self._guests_waiting = each_waiting, guests_waiting
        self._numbers = itertools.count()
        self._held: Counter[str] = Counter()
        self._held_by_guests = 0
        self._served: dict[str, int] = {}
        self._waiting: list[_Waiting] = []
        self._is_closed = False

    @property
    def waiting(self) -> int:
        """How many requests wait for a place."""
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        """Whether a caller who waits for nothing yet would have to wait for long."""
        return self.taken >= self.count and len(self._waiting) >= self._each_waiting

    @property
    def taken(self) -> int:
        """How many places are taken."""
        return self._held.total()

    @asynccontextmanager
    async def take(self, seconds: float | None = None) -> AsyncIterator[None]:
        """A place for the caller of this moment, during the block.

        Args:
            seconds: most to wait for it.

        Raises:
            BusyError: too many wait already, it took too long, or the service ends.
            GoneError: the caller went while it waited.
        """
        caller = current_caller()
        await self._wait(caller, seconds)
        try:
            yield
        finally:
            self._give_back(caller)

    def close(self) -> None:
        """Hand out no more: whoever waits is told that the service ends."""
        self._is_closed = True
        for each in self._waiting:
            if not each.granted.done():
                each.granted.set_exception(BusyError("the service ends: try again with the next one"))
        self._waiting.clear()

    async def _wait(self, caller: Caller, seconds: float | None) -> None:
        if self._is_closed:
            raise BusyError("the service ends: try again with the next one")
        same = sum(each.caller.name == caller.name for each in self._waiting)
        guests = sum(each.caller.is_guest for each in self._waiting)
        if same >= self._each_waiting or (caller.is_guest and guests >= self._guests_waiting):
            raise BusyError("too much is waiting to be done already: try again later")
        waiting = _Waiting(caller, next(self._numbers), asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._grant()
        try:
            async with asyncio.timeout(seconds):
                await caller.await_unless_gone(waiting.granted)
        except BaseException as error:
            granted = waiting.granted
            if granted.done() and not granted.cancelled() and granted.exception() is None:
                # It came at the moment when the caller went.
                self._give_back(caller)
            elif waiting in self._waiting:
                self._waiting.remove(waiting)
                self._forget(caller)
            if isinstance(error, TimeoutError):
                raise BusyError("the service is busy: try again later") from None
            raise

    def _grant(self) -> None:
        while self.taken < self.count:
            allowed = [each for each in self._waiting if self._may_hold_more(each.caller)]
            if not allowed:
                return
            chosen = min(
                allowed,
                key=lambda each: (self._held[each.caller.name], self._served.get(each.caller.name, -1), each.number),
            )
            self._waiting.remove(chosen)
            self._held[chosen.caller.name] += 1
            self._held_by_guests += chosen.caller.is_guest
            self._served[chosen.caller.name] = next(self._numbers)
            chosen.granted.set_result(None)

    def _may_hold_more(self, caller: Caller) -> bool:
        if caller.is_guest and self._held_by_guests >= self._guests:
            return False
        return self._held[caller.name] < self._each

    def _give_back(self, caller: Caller) -> None:
        self._held[caller.name] -= 1
        self._held_by_guests -= caller.is_guest
        self._grant()
        self._forget(caller)

    def _forget(self, caller: Caller) -> None:
        """Names of those who are no longer here would pile up."""
        if not self._held[caller.name]:
            del self._held[caller.name]
            if all(each.caller.name != caller.name for each in self._waiting):
                self._served.pop(caller.name, None)
