"""Run functions in separate processes, with limits of time and memory, and return futures.

`submit` behaves as in `concurrent.futures`, so that a cluster can replace the processes. A call that is killed or runs
out of memory fails alone: the next one gets a new process.
"""

import contextlib
import ctypes
import errno
import fcntl
import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.context import ForkServerContext, ForkServerProcess, SpawnContext, SpawnProcess
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, TypeVar

import structlog

from tcpwin.errors import CaptureError, SnapshotError, TcpwinError
from tcpwin.offline import deny_sockets

T = TypeVar("T")

PRELOADED = "tcpwin_web.jobs.preload"
"""Imported once: calls then start within milliseconds."""
GRACE_SECONDS = 2.0
START_SECONDS = 10.0
"""Time limit for starting a process: a killed fork server takes a moment to end, longer under load."""
DYING_SECONDS = 0.1
SAFE_PATH = "PYTHONSAFEPATH"
PR_SET_PDEATHSIG = 1
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
SCARCE = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)
"""Errors of a system that has run out of descriptors, processes or memory for a while."""
SCARCE_SECONDS, MOST_SCARCE_SECONDS = 0.1, 5.0
"""First and longest time to wait until there may be enough again."""

log = structlog.get_logger("tcpwin.jobs")


class JobError(Exception):
    """Reason why a call has no result, for the person who asked; can be pickled."""


class NoRoomError(JobError):
    """The disk was full."""

    def __init__(self) -> None:
        super().__init__("the service's disk is full: start it again once its operator has freed space")

    def __reduce__(self) -> tuple[type["NoRoomError"], tuple[()]]:
        return type(self), ()


class LostError(JobError):
    """The process ended without a result; another try may succeed."""


class ScarceError(LostError):
    """The system had too few descriptors, processes or memory; another try may succeed."""


class Executor(Protocol):
    """Runs calls: the part of `concurrent.futures.Executor` that the service uses."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        """Run a call elsewhere. Cancelling its future also ends it while it runs."""
        ...

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more calls; with `cancel_futures` end those that wait or run."""
        ...


class CallExecutor:
    """Runs up to `workers` calls at the same time, each supervised by a thread; others wait."""

    def __init__(self, workers: int, name: str) -> None:
        """Create the executor.

        Args:
            workers: maximum number of calls at the same time.
            name: prefix of thread names.
        """
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix=name)
        self._calls: set[Call] = set()
        self._lock = threading.Lock()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        """Run a call elsewhere. Cancelling its future also ends it while it runs."""
        call = Call(fn, args, kwargs)
        with self._lock:
            self._calls.add(call)
        call.add_done_callback(self._forget)
        self._threads.submit(self._run, call)
        return call

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more calls; with `cancel_futures` end those that wait or run."""
        if cancel_futures:
            with self._lock:
                calls = list(self._calls)
            for call in calls:
                call.cancel()
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)

    def _forget(self, call: "Future[Any]") -> None:
        with self._lock:
            self._calls.discard(call)

    def _run(self, call: "Call") -> None:
        raise NotImplementedError


class ProcessExecutor(CallExecutor):
    """Runs up to `workers` calls at the same time in processes; others wait."""

    def __init__(
        self,
        workers: int,
        *,
        memory_bytes: int,
        seconds: float,
        niceness: int = 0,
        held: Path | None = None,
        is_forked: bool = True,
        is_offline: bool = True,
    ) -> None:
        """Create the executor.

        Args:
            workers: maximum number of calls at the same time.
            niceness: niceness of its processes (nice(2)).
            held: file that each of its processes locks, together with the others, until it ends; if it is gone, they
                end at once.
            is_offline: deny network sockets to its processes where the kernel can (`tcpwin.offline`).
            is_forked: fork from a server that has imported everything. Otherwise each process is a new child of this
                one, and ends with it in any case.
        """
        self._memory_bytes = memory_bytes
        self._seconds = seconds
        self._niceness = niceness
        self._held = held
        self._is_offline = is_offline
        self._context: ForkServerContext | SpawnContext = multiprocessing.get_context("spawn")
        if is_forked:
            self._context = multiprocessing.get_context("forkserver")
            self._context.set_forkserver_preload([PRELOADED])
        super().__init__(workers, "job")

    def _run(self, call: "Call") -> None:
        if call.done():
            return
        started = self._start(call)
        if started is None:
            return
        process, here = started
        with here:
            call.process = process
            if call.cancelled():
                process.kill()
            try:
                self._await(call, process, here)
            finally:
                process.join(GRACE_SECONDS)
                if process.is_alive():
                    process.kill()
                    process.join()
                process.close()

    def _start(self, call: "Call") -> tuple[ForkServerProcess | SpawnProcess, Any] | None:
        """Start the process of a call, waiting for descriptors, memory and processes; None if the call is cancelled."""
        seconds = SCARCE_SECONDS
        while not call.done():
            try:
                here, there = self._context.Pipe(duplex=False)
                with there:
                    process = self._context.Process(
                        target=_work,
                        args=(
                            there,
                            self._memory_bytes,
                            self._niceness,
                            self._held,
                            self._is_offline,
                            call.fn,
                            call.args,
                            call.kwargs,
                        ),
                        daemon=True,
                    )
                    try:
                        _start(process)
                    except BaseException:
                        here.close()
                        raise
            except (OSError, EOFError, RuntimeError) as error:
                if seconds == SCARCE_SECONDS:
                    log.warning("no process could be started yet", reason=str(error) or type(error).__name__)
                time.sleep(seconds)
                seconds = min(2 * seconds, MOST_SCARCE_SECONDS)
            else:
                return process, here
        return None

    def _await(self, call: "Call", process: ForkServerProcess | SpawnProcess, here: Any) -> None:
        if not here.poll(self._seconds):
            process.kill()
            call.settle(error=JobError(f"it took longer than the {self._seconds:,.0f} seconds allowed"))
            return
        try:
            is_good, value = here.recv()
        except (EOFError, OSError):
            process.join(GRACE_SECONDS)
            call.settle(error=LostError(_ended(process.exitcode, self._memory_bytes)))
            return
        if is_good:
            call.settle(value)
        else:
            call.settle(error=value if isinstance(value, JobError) else JobError(value))


class Call(Future[Any]):
    """A future whose cancellation also kills its process."""

    def __init__(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        super().__init__()
        self.fn, self.args, self.kwargs = fn, args, kwargs
        self.process: ForkServerProcess | SpawnProcess | None = None
        self._settling = threading.Lock()

    def cancel(self) -> bool:
        # It stays "pending" for concurrent.futures until it is settled, so that it can be cancelled at any time.
        with self._settling:
            cancelled = super().cancel()
            process = self.process
        if cancelled and process is not None:
            # Its thread may already have closed it.
            with contextlib.suppress(ValueError):
                process.kill()
        return cancelled

    def settle(self, value: Any = None, *, error: BaseException | None = None) -> None:
        with self._settling:
            if self.done():
                return
            self.set_running_or_notify_cancel()
        if error is None:
            self.set_result(value)
        else:
            self.set_exception(error)


_starting = threading.Lock()


def _start(process: ForkServerProcess | SpawnProcess) -> None:
    """Start a process, trying again while the fork server is dying.

    multiprocessing starts another fork server once the kernel reports that the old one has ended. A killed one refuses
    or drops connections before that.
    """
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            return _begin(process)
        except (ConnectionError, EOFError):
            if time.monotonic() > end:
                raise
        time.sleep(DYING_SECONDS)


def _begin(process: ForkServerProcess | SpawnProcess) -> None:
    """Start a process without importing this process's main program, as multiprocessing would."""
    with _starting:
        program = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        # The fork server and the resource tracker are started with `python -c`, which would search the current folder
        # for modules first, where a stranger's captures may lie (cmdoption -P).
        before = os.environ.get(SAFE_PATH)
        os.environ[SAFE_PATH] = "1"
        try:
            process.start()
        finally:
            sys.modules["__main__"] = program
            if before is None:
                del os.environ[SAFE_PATH]
            else:
                os.environ[SAFE_PATH] = before


def _ended(code: int | None, memory_bytes: int) -> str:
    # The engine and the allocator abort if memory is refused; the kernel's OOM killer sends SIGKILL.
    if code in (-signal.SIGABRT, -signal.SIGKILL, -signal.SIGSEGV):
        name = signal.Signals(-code).name
        allowed = f"at most {memory_bytes:,} bytes are allowed"
        return f"its process was ended ({name}), by hand or for lack of memory ({allowed})"
    return f"its process ended without a result (status {code})"


def _in_words(error: Exception) -> JobError | str:
    # polars gives the kernel's reason only in its text, numpy only the number of bytes written.
    is_full = isinstance(error, OSError) and (error.errno in FULL or "requested and" in str(error))
    if is_full or any(f"(os error {number})" in str(error) for number in FULL):
        return NoRoomError()
    if isinstance(error, OSError):
        reason = os.strerror(error.errno) if error.errno else str(error)
        return ScarceError(reason) if error.errno in SCARCE else reason
    if any(f"(os error {number})" in str(error) for number in SCARCE):
        return ScarceError(str(error))
    import traceback

    traceback.print_exc()
    return f"it failed ({type(error).__name__}); the service's log says where"


def _work(
    there: Any,
    memory_bytes: int,
    niceness: int,
    held: Path | None,
    is_offline: bool,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Any,
) -> None:
    """Run one call in this process and send back its result, or the error in words."""
    _end_with_the_service()
    if held is not None:
        _hold(held)
    if is_offline:
        deny_sockets(all_threads=True)
    # The service decides when to end; an interrupt at its terminal reaches this process too.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # The service itself may have a lower limit, which only root could raise.
    allowed = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = memory_bytes if allowed == resource.RLIM_INFINITY else min(memory_bytes, allowed)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(niceness)
    try:
        answer: tuple[bool, Any] = (True, fn(*args, **kwargs))
    except MemoryError:
        answer = (False, f"it needs more than the {most:,} bytes of memory allowed")
    except (CaptureError, SnapshotError) as error:
        # The stored file's name is a hash, which means nothing to readers.
        answer = (False, error.message)
    except JobError as error:
        answer = (False, error)
    except TcpwinError as error:
        answer = (False, str(error))
    except Exception as error:  # noqa: BLE001 - whatever it is, the service hears of it
        answer = (False, _in_words(error))
    with contextlib.suppress(BrokenPipeError):
        there.send(answer)
    there.close()


def _hold(file: Path) -> None:
    """Lock a file until this process ends, which shows the next service that it still runs."""
    try:
        descriptor = os.open(file, os.O_RDONLY)
    except FileNotFoundError:
        os._exit(1)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    if not os.fstat(descriptor).st_nlink:
        os._exit(1)


def _end_with_the_service() -> None:
    """End this process if the service is killed: nobody waits, and the next service starts the same work again."""
    if sys.platform == "linux":
        # The fork server ends with the service, and this process with it (prctl(2)); a thread would cost address space.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == 1:
            os._exit(1)
