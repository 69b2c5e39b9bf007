"""Slots: whose turn it is, who is refused, and callers that leave before their turn."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tcpwin_web.slots import BusyError, Caller, FairSemaphore, GoneError, set_caller

ANN, BEN = "ann", "ben"


class Worker:
    """Takes slots for callers, and ends each piece of work on request."""

    def __init__(self, slots: FairSemaphore) -> None:
        self._slots = slots
        self.begun: list[str] = []
        self._ends: list[asyncio.Event] = []

    async def ask(self, name: str, caller: Caller, seconds: float | None = None) -> None:
        set_caller(caller)
        async with self._slots.take(seconds):
            self.begun.append(name)
            self._ends.append(asyncio.Event())
            await self._ends[-1].wait()

    async def end(self, number: int) -> None:
        self._ends[number].set()
        await settle()

    async def end_all(self) -> None:
        number = 0
        while number < len(self._ends):
            await self.end(number)
            number += 1


async def settle() -> None:
    """Let every task run as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


def in_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run an asynchronous test in a new event loop."""
    return functools.wraps(test)(lambda: asyncio.run(test()))


def slots(count: int, **limits: int) -> FairSemaphore:
    return FairSemaphore(count, **{"each": count, "guests": 1, "each_waiting": 100, "guests_waiting": 2, **limits})


@in_loop
async def test_who_asks_for_much_waits_for_himself_alone() -> None:
    worker = Worker(slots(1))
    ann, ben = Caller(ANN), Caller(BEN)
    tasks = [asyncio.create_task(worker.ask(f"a{number}", ann)) for number in range(5)]
    await settle()
    tasks += [asyncio.create_task(worker.ask(f"b{number}", ben)) for number in range(2)]
    await settle()
    await worker.end_all()
    # Ann was first; then they alternate until Ben has no more.
    assert worker.begun == ["a0", "b0", "a1", "b1", "a2", "a3", "a4"]
    await asyncio.gather(*tasks)


@in_loop
async def test_one_caller_never_holds_all_slots() -> None:
    worker = Worker(slots(3, each=2))
    tasks = [asyncio.create_task(worker.ask(f"a{number}", Caller(ANN))) for number in range(4)]
    await settle()
    assert worker.begun == ["a0", "a1"]
    tasks.append(asyncio.create_task(worker.ask("b0", Caller(BEN))))
    await settle()
    assert worker.begun == ["a0", "a1", "b0"]
    await worker.end_all()
    await asyncio.gather(*tasks)


@in_loop
async def test_guests_together_have_a_share() -> None:
    worker = Worker(slots(2))
    guests = [
        asyncio.create_task(worker.ask(f"g{number}", Caller(f"guest {number}", is_guest=True))) for number in range(4)
    ]
    await settle()
    # One works, two wait, one is refused immediately.
    assert worker.begun == ["g0"]
    assert [each.done() for each in guests] == [False, False, False, True]
    with pytest.raises(BusyError, match="too many requests are waiting"):
        guests[3].result()
    ann = asyncio.create_task(worker.ask("a0", Caller(ANN)))
    await settle()
    assert worker.begun == ["g0", "a0"]
    await worker.end_all()
    await asyncio.gather(*guests[:3], ann)
    assert worker.begun == ["g0", "a0", "g1", "g2"]


@in_loop
async def test_a_client_that_leaves_loses_its_turn_and_delays_nobody() -> None:
    one = slots(1)
    worker = Worker(one)
    ann, ben = Caller(ANN), Caller(BEN)
    first = asyncio.create_task(worker.ask("a0", ann))
    await settle()
    gone, next_one = (
        asyncio.create_task(worker.ask("b0", ben)),
        asyncio.create_task(worker.ask("c0", Caller("c"))),
    )
    await settle()
    assert one.waiting == 2
    ben.gone.set()
    await settle()
    assert one.waiting == 1
    with pytest.raises(GoneError):
        gone.result()
    await worker.end_all()
    await asyncio.gather(first, next_one)
    assert (worker.begun, one.taken, one.waiting) == (["a0", "c0"], 0, 0)


@in_loop
async def test_clients_that_wait_too_long_or_at_shutdown_get_an_answer() -> None:
    one = slots(1, each_waiting=1)
    worker = Worker(one)
    first = asyncio.create_task(worker.ask("a0", Caller(ANN)))
    await settle()
    with pytest.raises(BusyError, match="busy"):
        await worker.ask("b0", Caller(BEN), 0.01)
    waiting = asyncio.create_task(worker.ask("a1", Caller(ANN)))
    await settle()
    assert one.is_full
    with pytest.raises(BusyError, match="too many requests are waiting"):
        await worker.ask("a2", Caller(ANN))
    one.close()
    with pytest.raises(BusyError, match="the service is stopping"):
        await waiting
    with pytest.raises(BusyError, match="the service is stopping"):
        await worker.ask("c0", Caller("c"))
    await worker.end_all()
    await first
    assert one.taken == 0


@in_loop
async def test_a_result_is_cancelled_where_nobody_waits() -> None:
    caller = Caller(ANN)
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(caller.await_unless_gone(future))
    await settle()
    caller.gone.set()
    with pytest.raises(GoneError):
        await waiting
    assert future.cancelled()


@in_loop
async def test_one_slot_is_reserved_for_the_owner() -> None:
    worker = Worker(slots(2, reserved=1))
    owner = Caller("owner", is_owner=True)
    tasks = [asyncio.create_task(worker.ask(name, Caller(name))) for name in (ANN, BEN)]
    await settle()
    assert worker.begun == [ANN]
    tasks += [asyncio.create_task(worker.ask(f"owner {number}", owner)) for number in range(2)]
    await settle()
    assert worker.begun == [ANN, "owner 0"]
    await worker.end(1)
    assert worker.begun == [ANN, "owner 0", "owner 1"]
    await worker.end(0)
    assert worker.begun[-1] == BEN
    await worker.end_all()
    await asyncio.gather(*tasks)


@in_loop
async def test_a_slot_is_not_lost_to_a_request_that_is_just_cancelled() -> None:
    """The grant failed, after the slot had been counted as taken."""
    only = slots(1, outlasts_callers=True)

    async def hold() -> None:
        async with only.take():
            pass

    async with only.take():
        waiting = asyncio.create_task(hold())
        await asyncio.sleep(0)
        waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert (only.taken, only.waiting) == (0, 0)
