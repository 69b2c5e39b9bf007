"""Captures on a web server or in an object store: copied once to an unnamed temporary file.

In: an address. Out: an open file. Downloads are bounded in bytes and time, and redirects may lead to web servers only.
"""

from __future__ import annotations

import http.client
import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import IO, Any
from urllib import error, request
from urllib.parse import urlsplit

from tcpwin.errors import SourceError
from tcpwin.processes import alone
from tcpwin.sources.addresses import CHUNK_BYTES, WEB, is_of_store, open_store, public_name, store_reason

MOST_BYTES = 64 << 30
MOST_SECONDS = 3600.0
SILENT_SECONDS = 60.0
"""Maximum time without receiving data."""
MOST_REDIRECTS = 5


def fetch(address: str) -> IO[bytes]:
    """Download the file at an address.

    Raises:
        SourceError: it does not exist, is too slow, or is too large.
    """
    if urlsplit(address).scheme.lower() not in WEB:
        return _fetch_object(address)
    file = tempfile.TemporaryFile(prefix="tcpwin-")  # noqa: SIM115
    try:
        _fetch_web(address, file)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return file


class _Redirects(request.HTTPRedirectHandler):
    max_redirections = MOST_REDIRECTS

    def redirect_request(self, req: request.Request, *rest: Any) -> request.Request | None:
        if urlsplit(req.full_url).scheme == "https" and urlsplit(rest[-1]).scheme != "https":
            raise error.URLError("redirected from https to an insecure address")
        return super().redirect_request(req, *rest)


def _fetch_web(address: str, file: IO[bytes]) -> None:
    name = public_name(address)
    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler,
        request.UnknownHandler,
        request.HTTPHandler,
        request.HTTPSHandler,
        request.HTTPDefaultErrorHandler,
        _Redirects,
        request.HTTPErrorProcessor,
    ):
        opener.add_handler(handler())
    until = time.monotonic() + MOST_SECONDS
    try:
        if urlsplit(address).username is not None:
            raise SourceError(f"{name}: a user name is not supported in an address")
        asked = request.Request(address, headers={"User-Agent": "tcpwin", "Accept-Encoding": "identity"})
        with opener.open(asked, timeout=SILENT_SECONDS) as answer:
            _copy(name, answer, file, until)
    except error.HTTPError as failure:
        reason = f"{failure.code} {str(failure.reason).splitlines()[0]}"
        if "infinite loop" in str(failure.reason):
            reason = f"more than {MOST_REDIRECTS} redirects"
        failure.close()
        raise SourceError(f"{name}: the server answers {reason}") from None
    except TimeoutError:
        raise SourceError(f"{name}: no data for {SILENT_SECONDS:.0f} s") from None
    except (OSError, ValueError, http.client.HTTPException) as failure:
        cause = getattr(failure, "reason", None) or failure
        if isinstance(cause, TimeoutError):
            cause = f"no answer for {SILENT_SECONDS:.0f} s"
        words = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
        raise SourceError(f"{name}: {words.splitlines()[0][:300]}") from None


def _copy(name: str, answer: http.client.HTTPResponse, file: IO[bytes], until: float) -> None:
    length = answer.headers.get("Content-Length", "")
    size_bytes = int(length) if re.fullmatch(r"\d{1,18}", length) else None
    room = min(MOST_BYTES, shutil.disk_usage(tempfile.gettempdir()).free)
    came = 0
    while piece := answer.read1(CHUNK_BYTES):
        came += len(piece)
        if max(came, size_bytes or 0) > room:
            limit = (
                "is larger than allowed for an address"
                if room == MOST_BYTES
                else "is larger than the free space (TMPDIR)"
            )
            raise SourceError(f"{name} {limit}: {room:,} bytes")
        if time.monotonic() > until:
            raise SourceError(f"{name} takes longer than {MOST_SECONDS:.0f} s: fetch it first")
        file.write(piece)
    if size_bytes is not None and came != size_bytes:
        raise SourceError(f"{name}: only {came:,} of {size_bytes:,} bytes arrived")


def _fetch_object(address: str) -> IO[bytes]:
    with tempfile.TemporaryDirectory(prefix="tcpwin-") as folder:
        copy = Path(folder) / "capture"
        # The client's threads do not survive a fork, so only a child process may use it.
        alone(_copy_object, address, str(copy), min(MOST_BYTES, shutil.disk_usage(folder).free))
        return copy.open("rb")


def _copy_object(address: str, copy: str, room: int) -> None:
    store, _, path = open_store(address)
    try:
        import obstore

        found = obstore.get(store, path)
        if found.meta["size"] > room:
            raise SourceError(f"{public_name(address)} is larger than the available space: {room:,} bytes")
        until = time.monotonic() + MOST_SECONDS
        with Path(copy).open("wb") as out:
            for piece in found.stream(min_chunk_size=CHUNK_BYTES):
                out.write(piece)
                if time.monotonic() > until:
                    raise SourceError(f"{public_name(address)} takes longer than {MOST_SECONDS:.0f} s: fetch it first")
    except FileNotFoundError:
        raise SourceError(f"{public_name(address)}: nothing found") from None
    except Exception as failure:
        if isinstance(failure, SourceError) or not is_of_store(failure):
            raise
        raise SourceError(f"{public_name(address)}: {store_reason(failure)}") from None
