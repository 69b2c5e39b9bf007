"""Deny sockets to a thread or to this process, so that nothing in it can send anything (seccomp(2)).

On Linux for x86-64 and ARM64; elsewhere `deny_sockets` returns False.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
import sys
import threading
from collections.abc import Callable
from typing import NamedTuple, TypeVar

T = TypeVar("T")

AF_UNIX, AF_NETLINK = 1, 16
_PR_SET_NO_NEW_PRIVS, _SET_MODE_FILTER, _ALL_THREADS = 38, 1, 1
_IO_URING_SETUP, _X32 = 425, 0x40000000
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _DENY = 0x7FFF0000, 0x00050000 | errno.EACCES
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
"""Offsets in struct seccomp_data, on machines with the low byte first."""


class _Machine(NamedTuple):
    architecture: int
    seccomp: int
    socket: int


_MACHINES = {"x86_64": _Machine(0xC000003E, 317, 41), "aarch64": _Machine(0xC00000B7, 277, 198)}


def deny_sockets(*, local: bool = False, all_threads: bool = False) -> bool:
    """Deny new sockets to this thread, and to the threads and processes that it starts; return whether it worked.

    Args:
        local: still allow sockets that cannot leave this machine (unix(7), netlink(7)), which browsers need.
        all_threads: deny them to all threads of the process.
    """
    machine = _MACHINES.get(platform.machine())
    if not sys.platform.startswith("linux") or machine is None:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    program = ctypes.create_string_buffer(_program(machine, local=local))
    described = ctypes.create_string_buffer(struct.pack("@HP", len(program.raw) // 8, ctypes.addressof(program)))
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        return False
    flags = _ALL_THREADS if all_threads else 0
    return bool(libc.syscall(machine.seccomp, _SET_MODE_FILTER, flags, described) == 0)


def run_offline(call: Callable[[], T], *, instead: Callable[[], None]) -> T:
    """Run a call in a thread that cannot open sockets; where that is impossible, run `instead` first.

    Raises what the call, or `instead`, raises.
    """
    answers: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            if not deny_sockets():
                instead()
            answers.append(call())
        except BaseException as error:  # noqa: BLE001 - raised in the caller's thread
            errors.append(error)

    thread = threading.Thread(target=run, name="offline")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return answers[0]


def _program(machine: _Machine, *, local: bool) -> bytes:
    """Return the filter: instructions as in linux/filter.h, each with its jumps if true and if false."""
    families = (AF_UNIX, AF_NETLINK) if local else ()
    steps: list[tuple[int, int, str, str]] = [
        (_LOAD, _ARCHITECTURE, "", ""),
        (_EQUAL, machine.architecture, "", "deny"),
        (_LOAD, _NUMBER, "", ""),
        (_AT_LEAST, _X32, "deny", ""),
        (_EQUAL, _IO_URING_SETUP, "deny", ""),
        (_EQUAL, machine.socket, "", "allow"),
        (_LOAD, _FIRST_ARGUMENT, "", ""),
        *((_EQUAL, family, "allow", "") for family in families),
        (_RETURN, _DENY, "", ""),
        (_RETURN, _ALLOW, "", ""),
    ]
    places = {"deny": len(steps) - 2, "allow": len(steps) - 1}
    return b"".join(
        struct.pack("=HBBI", code, *(places[to] - number - 1 if to else 0 for to in (yes, no)), value)
        for number, (code, value, yes, no) in enumerate(steps)
    )
