"""Both ends of a workload as forks of this process, without starting programs or importing modules again.

In: a namespace and a task. Out: whether it finished. A fork waits for a signal to start, so that all forks exist before
the first thread.
"""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tcpwin.lab.network import NetworkError, enter


class Fork:
    """A child process in a namespace."""

    def __init__(self, end: str, act: Callable[[], None], complaint: Path) -> None:
        self._end, self._complaint = end, complaint
        waits, self._goes = os.pipe()
        self._pid = os.fork()
        if self._pid:
            os.close(waits)
            return
        status = 1
        try:
            os.close(self._goes)
            if os.read(waits, 1):
                enter(end)
                act()
                status = 0
        except BaseException:  # noqa: BLE001 - the parent says it
            complaint.write_text(traceback.format_exc(), encoding="utf8")
        finally:
            os._exit(status)

    def go(self) -> None:
        """Let it start."""
        os.write(self._goes, b".")

    def wait(self) -> None:
        """Wait for its end.

        Raises:
            NetworkError: it failed.
        """
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        if status:
            said = self._complaint.read_text(encoding="utf8") if self._complaint.exists() else f"status {status}"
            self._complaint.unlink(missing_ok=True)
            raise NetworkError(f"the workload failed at the {self._end}: {said.strip().splitlines()[-1][-300:]}")

    def end(self) -> None:
        """End it if it is still running."""
        with suppress(OSError):
            os.close(self._goes)
        if self._pid:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._pid = 0
