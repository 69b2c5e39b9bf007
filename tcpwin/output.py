"""Write files completely or not at all: a full disk, Ctrl-C or the end of the process never leaves a partial file.

In: a path. Out: an open file, or an error in one sentence. Data goes to a temporary file in the same folder, which is
renamed when complete and until then leaves an existing file unchanged. Devices and pipes are written directly.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from tcpwin.errors import OutputError

_DESCRIPTORS = ("/dev/fd/", "/dev/stderr", "/dev/stdout", "/proc/")
"""Names of open descriptors, whose files are elsewhere and may have other writers."""


@contextmanager
def open_whole(
    path: str | os.PathLike[str], *, is_binary: bool = False, errors: str = "backslashreplace"
) -> Iterator[IO[Any]]:
    """Open a file for writing UTF-8 text or bytes; it receives its name once it is complete.

    A symbolic link keeps its target, and a file its permissions. If the folder does not allow new files, an existing
    file is overwritten in place.

    Raises:
        OutputError: it cannot be opened or written.
    """
    text: dict[str, Any] = {} if is_binary else {"encoding": "utf-8", "errors": errors, "newline": ""}
    beside: Path | None = None
    try:
        final = _final(Path(path))
        # The name is chosen before the file exists, so that any interruption from here on removes the file.
        beside = None if final is None else final.with_name(f".tcpwin-{os.urandom(8).hex()}.part")
        if final is not None and beside is not None and not _begin(beside, final):
            beside = None
        with (beside or Path(path)).open("wb" if is_binary else "w", **text) as file:
            yield file
        if final is not None and beside is not None:
            beside.replace(final)
            beside = None
    except OSError as error:
        if error.filename not in (None, str(path), str(beside)):
            raise
        raise OutputError(f"{os.fspath(path)}: {error.strerror or error}") from None
    finally:
        if beside is not None:
            beside.unlink(missing_ok=True)


def append_whole(path: Path, text: str) -> None:
    """Append text to a file; if not all of it can be written, restore the file's length."""
    with path.open("ab", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        data = text.encode()
        try:
            while data:
                data = data[file.write(data) :]
        except BaseException:
            file.truncate(end)
            raise


def _final(path: Path) -> Path | None:
    """Return the final path, or None if the file must be written in place."""
    if path.absolute().as_posix().startswith(_DESCRIPTORS) or (path.exists() and not path.is_file()):
        return None
    return Path(os.path.realpath(path))


def _begin(beside: Path, final: Path) -> bool:
    """Create an empty file next to the target; return False if that fails and the target must be written in place."""
    before = final.stat() if final.exists() else None
    if before is not None and not os.access(final, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except PermissionError:
        if before is not None:
            return False
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None
    except OSError as error:
        raise OSError(error.errno, error.strerror) from None
    try:
        if before is not None:
            # Windows has no such owners, and cannot change the mode through a descriptor.
            if hasattr(os, "fchown"):
                with suppress(OSError):
                    os.fchown(descriptor, before.st_uid, before.st_gid)
            beside.chmod(before.st_mode & 0o7777)
    finally:
        os.close(descriptor)
    return True
