"""Slots for work of one kind, handed out fairly: callers with many requests do not delay the others.

Each kind of work (uploads, answers, prints) has its own slots, so that one kind never waits for another. A slot goes
to the caller that holds fewest, then to the one served longest ago. Independent of requests: the caller is a context
variable, by default the service itself.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")

RETRY_SECONDS, TURN_SECONDS = 5, 30.0
MANY = 1 << 30
"""No limit: the number of waiting requests is limited elsewhere."""


class BusyError(Exception):
    """No slot is free; the message is for the caller, who may try again."""


class GoneError(Exception):
    """Nobody waits for the response any more."""


@dataclass(frozen=True, eq=False)
class Caller:
    """The sender of a request.

    Attributes:
        name: the same for all requests that share turns; never shown.
        is_guest: uses a share link. All guests together get a share of the slots.
        is_owner: has full access, and a reserve of everything.
        credential: the login or token shown, whatever the address. Logins made with an API token count as the token.
        gone: set when nobody waits any more.
    """

    name: str
    is_guest: bool = False
    is_owner: bool = False
    credential: str | None = None
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def await_unless_gone(self, future: "asyncio.Future[T]") -> T:
        """Wait for a future's result; cancel it if the caller leaves first.

        Raises:
            GoneError: the caller left.
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
    """Return the caller of the current context."""
    return _caller.get() or Caller("service", is_owner=True)


def set_caller(caller: Caller) -> None:
    """Set the caller of this task and of those it starts."""
    _caller.set(caller)


@dataclass(eq=False)
class _Waiting:
    caller: Caller
    number: int
    granted: "asyncio.Future[None]"


class FairSemaphore:
    """A semaphore whose slots are shared fairly among callers."""

    def __init__(
        self,
        count: int,
        *,
        each: int,
        guests: int,
        each_waiting: int = MANY,
        guests_waiting: int = MANY,
        reserved: int = 0,
        outlasts_callers: bool = False,
    ) -> None:
        """Create the semaphore.

        Args:
            each: maximum number of slots per caller.
            guests: maximum number of slots of all guests together.
            each_waiting: maximum number of waiting requests per caller; further ones are refused.
            guests_waiting: the same for all guests together.
            reserved: slots that only the owner may hold.
            outlasts_callers: keep waiting if the caller leaves, for work that cleans up after it.
        """
        self.count = count
        self._each, self._guests = each, guests
        self._each_waiting, self._guests_waiting = each_waiting, guests_waiting
        self._others = max(count - reserved, 1)
        self._outlasts_callers = outlasts_callers
        self._held_by_owner = 0
        self._numbers = itertools.count()
        self._held: Counter[str] = Counter()
        self._held_by_guests = 0
        self._served: dict[str, int] = {}
        self._waiting: list[_Waiting] = []
        self._is_closed = False

    @property
    def waiting(self) -> int:
        """Number of waiting requests."""
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        """Whether even a new caller would have to wait long."""
        return self.taken >= self.count and len(self._waiting) >= self._each_waiting

    @property
    def taken(self) -> int:
        """Number of slots in use."""
        return self._held.total()

    @asynccontextmanager
    async def take(self, seconds: float | None = None) -> AsyncIterator[None]:
        """Hold a slot for the current caller during the block.

        Args:
            seconds: maximum wait.

        Raises:
            BusyError: too many requests wait, the wait was too long, or the service is stopping.
            GoneError: the caller left while waiting.
        """
        caller = current_caller()
        await self._wait(caller, seconds)
        try:
            yield
        finally:
            self._give_back(caller)

    def close(self) -> None:
        """Grant no more slots, and refuse the waiting requests: the service is stopping."""
        self._is_closed = True
        for each in self._waiting:
            if not each.granted.done():
                each.granted.set_exception(BusyError("the service is stopping: try again later"))
        self._waiting.clear()

    async def _wait(self, caller: Caller, seconds: float | None) -> None:
        if self._is_closed:
            raise BusyError("the service is stopping: try again later")
        same = sum(each.caller.name == caller.name for each in self._waiting)
        guests = sum(each.caller.is_guest for each in self._waiting)
        if same >= self._each_waiting or (caller.is_guest and guests >= self._guests_waiting):
            raise BusyError("too many requests are waiting already: try again later")
        waiting = _Waiting(caller, next(self._numbers), asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._grant()
        if waiting.granted.done():
            return
        try:
            async with asyncio.timeout(seconds):
                await (waiting.granted if self._outlasts_callers else caller.await_unless_gone(waiting.granted))
        except BaseException as error:
            granted = waiting.granted
            if granted.done() and not granted.cancelled() and granted.exception() is None:
                # The slot was granted just as the caller left.
                self._give_back(caller)
            elif waiting in self._waiting:
                self._waiting.remove(waiting)
                self._forget(caller)
            if isinstance(error, TimeoutError):
                raise BusyError("the service is busy: try again later") from None
            raise

    def _grant(self) -> None:
        while self.taken < self.count:
            # A waiter that was just cancelled has not left the queue yet.
            there = (each for each in self._waiting if not each.granted.done())
            allowed = [each for each in there if self._may_hold_more(each.caller)]
            if not allowed:
                return
            chosen = min(
                allowed,
                key=lambda each: (self._held[each.caller.name], self._served.get(each.caller.name, -1), each.number),
            )
            self._waiting.remove(chosen)
            self._held[chosen.caller.name] += 1
            self._held_by_guests += chosen.caller.is_guest
            self._held_by_owner += chosen.caller.is_owner
            self._served[chosen.caller.name] = next(self._numbers)
            chosen.granted.set_result(None)

    def _may_hold_more(self, caller: Caller) -> bool:
        if caller.is_guest and self._held_by_guests >= self._guests:
            return False
        if not caller.is_owner and self.taken - self._held_by_owner >= self._others:
            return False
        return self._held[caller.name] < self._each

    def _give_back(self, caller: Caller) -> None:
        self._held[caller.name] -= 1
        self._held_by_guests -= caller.is_guest
        self._held_by_owner -= caller.is_owner
        self._grant()
        self._forget(caller)

    def _forget(self, caller: Caller) -> None:
        """Drop names of absent callers, which would pile up."""
        if not self._held[caller.name]:
            del self._held[caller.name]
            if all(each.caller.name != caller.name for each in self._waiting):
                self._served.pop(caller.name, None)


class Turn:
    """A request's slot in the event loop, which makes only a few answers at a time."""

    def __init__(self, slots: FairSemaphore) -> None:
        self._slots = slots
        self._held = AsyncExitStack()
        self.is_held = False

    async def begin(self) -> None:
        """Wait for the slot.

        Raises:
            BusyError, GoneError: see `FairSemaphore.take`.
        """
        await self._held.enter_async_context(self._slots.take(TURN_SECONDS))
        self.is_held = True
        _turn.set(self)

    async def end(self) -> None:
        """Release the slot if it is held."""
        self.is_held = False
        await self._held.aclose()


_turn: ContextVar[Turn | None] = ContextVar("turn", default=None)


@asynccontextmanager
async def waiting() -> AsyncIterator[None]:
    """Release this request's turn during the block, in which it waits for a worker or its client."""
    turn = _turn.get()
    if turn is None or not turn.is_held:
        yield
        return
    await turn.end()
    yield
    await turn.begin()
