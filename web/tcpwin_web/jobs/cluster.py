"""Run calls on the workers of a Dask cluster, each in its own process with limits.

Workers see the data folder under the same path. Calls of a worker that ends or is cut off go to the others.
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
"""Time for the scheduler to answer."""
LOOK_SECONDS = 0.5
"""Interval at which both ends check that a call is still wanted."""
NANNY = (
    "a worker under a nanny cannot start processes: start it with --no-nanny, "
    "or with DASK_DISTRIBUTED__WORKER__DAEMON=False"
)


class ClusterExecutor(CallExecutor):
    """Runs up to `workers` calls at the same time on a cluster; others wait."""

    def __init__(self, address: str, workers: int, *, memory_bytes: int, seconds: float, niceness: int = 0) -> None:
        """Create the executor; it connects to the scheduler with the first call.

        Args:
            address: the scheduler, as dask://HOST:PORT.
            workers: maximum number of calls at the same time.
        """
        self._address = address.replace(PREFIX, "tcp://", 1)
        self._limits = (memory_bytes, seconds, niceness)
        super().__init__(workers, "cluster")
        self._client: Any = None

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more calls; with `cancel_futures` end those that wait or run."""
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
        except Exception as error:  # noqa: BLE001 - a cluster's errors have no common type
            call.settle(error=LostError(f"the cluster lost it ({type(error).__name__})"))

    def _connected(self) -> Any:
        from distributed import Client

        # It logs every worker that comes and goes.
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
    """Run a call in its own process, as the service does locally, until it ends or nobody wants it."""
    from distributed import Event

    if multiprocessing.current_process().daemon:
        raise JobError(NANNY)
    call = _processes(memory_bytes, seconds, niceness).submit(fn, *args, **kwargs)
    event = Event(unwanted)
    while True:
        try:
            return call.result(timeout=LOOK_SECONDS)
        except TimeoutError:
            # A worker that cannot reach its scheduler is cut off: another worker has its call by then.
            try:
                is_unwanted = event.is_set()
            except Exception:  # noqa: BLE001 - whatever it is
                is_unwanted = True
            if is_unwanted:
                call.cancel()
                with contextlib.suppress(Exception):
                    event.clear()
                raise JobError("the call is no longer wanted") from None


@cache
def _processes(memory_bytes: int, seconds: float, niceness: int) -> ProcessExecutor:
    """Return a worker's executor: Dask sends a worker no more calls than it has threads."""
    limits: dict[str, Any] = {"memory_bytes": memory_bytes, "seconds": seconds, "niceness": niceness}
    return ProcessExecutor(multiprocessing.cpu_count(), **limits, is_forked=False)
