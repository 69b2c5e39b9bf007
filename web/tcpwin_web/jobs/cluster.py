"""Functions in, futures out: each call on a worker of a Dask cluster, there in a process of its own with its limits.

A worker sees the data folder by the same path. One that ends, or is cut off, loses its calls to the others.
"""

import contextlib
import logging
import multiprocessing
import secrets
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from tcpwin_web.jobs.executor import Call, CallExecutor, JobError, LostError, ProcessExecutor

T = TypeVar("T")

PREFIX = "dask://"
ANSWER_SECONDS = 10
"""So long a scheduler may take to answer."""
LOOK_SECONDS = 0.5
"""So often both ends look whether a call is still wanted."""
NANNY = (
    "a worker that a nanny watches cannot begin processes: start it with --no-nanny, "
    "or with DASK_DISTRIBUTED__WORKER__DAEMON=False"
)


class ClusterExecutor(CallExecutor):
    """Runs calls on the workers of a cluster, so many at a time; the others wait."""

    def __init__(self, address: str, workers: int, *, memory_bytes: int, seconds: float, niceness: int = 0) -> None:
        """Make it; the scheduler is asked with the first call.

        Args:
            address: of the scheduler, as dask://HOST:PORT.
            workers: calls at the same time.
        """
        self._address = address.replace(PREFIX, "tcp://", 1)
        self._limits = (memory_bytes, seconds, niceness)
        super().__init__(workers, "cluster")
        self._client: Any = None

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls; with `cancel_futures` end those that are waiting or running."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        with self._lock:
            if self._client is not None:
                self._client.close()

    def _run(self, call: Call) -> None:
        from distributed import Event

        if call.done():
            return
        unwanted = f"tcpwin-unwanted-{secrets.token_hex(8)}"
        try:
            client = self._connected()
            future = client.submit(_on_worker, unwanted, call.fn, call.args, call.kwargs, *self._limits, pure=False)
            while not call.cancelled():
                with contextlib.suppress(TimeoutError):
                    call.settle(future.result(timeout=LOOK_SECONDS))
                    return
            future.cancel()
            Event(unwanted, client=client).set()
        except JobError as error:
            call.settle(error=error)
        except Exception as error:  # noqa: BLE001 - of the cluster, whatever it is: a scheduler that went, a worker killed
            call.settle(error=LostError(f"the cluster lost it ({type(error).__name__})"))

    def _connected(self) -> Any:
        from distributed import Client

        # It tells of every worker that comes and goes.
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        with self._lock:
            if self._client is None or self._client.status != "running":
                try:
                    self._client = Client(
                        self._address, timeout=ANSWER_SECONDS, set_as_default=False, name="tcpwin-web"
                    )
                except (OSError, ValueError, TimeoutError):
                    raise LostError(f"the cluster's scheduler at {self._address} does not respond") from None
            return self._client


def _on_worker(
    unwanted: str,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    memory_bytes: int,
    seconds: float,
    niceness: int,
) -> Any:
    """Run a call in a process of its own, as the service does at home, until it is over or nobody wants it."""
    from distributed import Event

    if multiprocessing.current_process().daemon:
        raise JobError(NANNY)
    call = _processes(memory_bytes, seconds, niceness).submit(fn, *args, **kwargs)
    event = Event(unwanted)
    while True:
        try:
            return call.result(timeout=LOOK_SECONDS)
        except TimeoutError:
            # A worker that hears nothing of its scheduler is cut off: its call is somebody else's by then.
            try:
                is_unwanted = event.is_set()
            except Exception:  # noqa: BLE001 - whatever it is
                is_unwanted = True
            if is_unwanted:
                call.cancel()
                with contextlib.suppress(Exception):
                    event.clear()
                raise JobError("nobody wants it any more") from None


@cache
def _processes(memory_bytes: int, seconds: float, niceness: int) -> ProcessExecutor:
    """A worker gives no more calls than it has threads: so many processes, and no fewer."""
    limits: dict[str, Any] = {"memory_bytes": memory_bytes, "seconds": seconds, "niceness": niceness}
    return ProcessExecutor(multiprocessing.cpu_count(), **limits, is_forked=False)
