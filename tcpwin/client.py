"""Use a running tcpwin service from Python: upload captures, and receive plain values and Arrow bytes.

>>> from tcpwin.client import Client
>>> with Client("http://127.0.0.1:8642") as client:
...     capture = client.wait(client.upload("slow.pcap")["id"])
...     worst = client.connections(capture["id"], limit=1)[0]

Needs only the standard library.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal
from urllib.parse import quote, urlencode, urlsplit

from tcpwin.errors import ArgumentError, TcpwinError

WAITING = ("queued", "running")
POLL_SECONDS = 0.2
PAGE_ROWS = 1000

Direction = Literal["a_to_b", "b_to_a"]


class ServiceError(TcpwinError):
    """The service refused a request, or is unreachable.

    Attributes:
        status: HTTP status; 0 without a response.
        problem: the problem document (RFC 9457); empty without one.
    """

    def __init__(self, status: int, message: str, problem: Mapping[str, Any] | None = None) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = message
        self.problem = dict(problem or {})

    def __str__(self) -> str:
        return self.message


class Client:
    """A connection to one service.

    Args:
        address: the service's URL, such as ``http://127.0.0.1:8642``.
        token: required if the service uses tokens.
    """

    def __init__(self, address: str, *, token: str | None = None) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or parts.hostname is None:
            raise ArgumentError(f"invalid service address: {address!r}")
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._connection = kind(parts.hostname, parts.port)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def upload(
        self, *files: str | os.PathLike[str], name: str | None = None, tags: Iterable[str] = ()
    ) -> dict[str, Any]:
        """Upload files of one case (captures, snapshots, bundles), start the analysis, and return the capture's entry.

        For a bundle with several captures, return the first one's; ``captures(bundle=entry["bundle_id"])`` lists them
        all.

        Raises:
            ServiceError: the upload was refused; the service keeps nothing.
            OSError: a file cannot be read.
        """
        paths = [Path(file) for file in files]
        if not paths:
            raise ArgumentError("no file to upload")
        made = self._ask("POST", "/captures", {"name": name or paths[0].name, "tags": list(tags)})
        place = f"/captures/{made['id']}"
        try:
            for path in paths:
                with path.open("rb") as file:
                    self._send("PUT", f"{place}/files?{urlencode({'name': path.name})}", file)
            entry: dict[str, Any] = self._ask("POST", f"{place}/analysis")
        except BaseException:
            self._connection.close()
            self.delete(made["id"])
            raise
        return entry

    def wait(self, capture_id: str) -> dict[str, Any]:
        """Wait until the analysis of a capture ends, and return the capture's entry.

        Raises:
            ServiceError: it failed, or was cancelled.
        """
        while (entry := self.capture(capture_id))["status"] in WAITING:
            time.sleep(POLL_SECONDS)
        if entry["status"] != "done":
            raise ServiceError(409, f"the analysis {entry['status']}: {entry['failure'] or 'by request'}")
        return entry

    def captures(self, *, search: str = "", tag: str = "", bundle: str = "") -> Iterator[dict[str, Any]]:
        """Yield every matching capture, the newest first; `bundle` is a ``bundle_id``."""
        offset = 0
        while True:
            query = urlencode({"search": search, "tag": tag, "bundle": bundle, "offset": offset, "limit": PAGE_ROWS})
            page = self._ask("GET", f"/captures?{query}")
            yield from page["captures"]
            offset += PAGE_ROWS
            if offset >= page["total"]:
                return

    def capture(self, capture_id: str) -> dict[str, Any]:
        """Return a capture's entry, with its files."""
        return self._dictionary(f"/captures/{quote(capture_id, safe='')}")

    def analysis(self, capture_id: str) -> dict[str, Any]:
        """Return an analysis: facts about the capture, summary, findings, hosts."""
        return self._dictionary(f"/captures/{quote(capture_id, safe='')}/analysis")

    def findings(self, capture_id: str, *, limit: int = 100) -> list[dict[str, Any]]:
        """Return the findings, the costliest first."""
        found = self._dictionary(f"/captures/{quote(capture_id, safe='')}/findings?limit={limit}")
        return list(found["findings"])

    def connections(
        self,
        capture_id: str,
        *,
        where: Iterable[str] = (),
        sort: str = "worst",
        offset: int = 0,
        limit: int = 100,
    ) -> list[dict[str, Any]]:
        """Return a page of connections with their verdicts; each condition is text like ``verdict.limit=path_loss``."""
        query = urlencode({"where": list(where), "sort": sort, "offset": offset, "limit": limit}, doseq=True)
        found = self._dictionary(f"/captures/{quote(capture_id, safe='')}/connections?{query}")
        return list(found["connections"])

    def connection(self, capture_id: str, connection: int) -> dict[str, Any]:
        """Return all measurements of one connection."""
        return self._dictionary(f"/captures/{quote(capture_id, safe='')}/connections/{connection}")

    def elsewhere(self, capture_id: str, connection: int) -> list[dict[str, Any]]:
        """Find the same connection in the other captures of its bundle: ``capture_id``, ``name`` and ``connection``."""
        found = self._dictionary(f"/captures/{quote(capture_id, safe='')}/connections/{connection}/elsewhere")
        return list(found["elsewhere"])

    def series(
        self,
        capture_id: str,
        connection: int,
        name: str,
        *,
        direction: Direction = "a_to_b",
        start_ns: int | None = None,
        end_ns: int | None = None,
        points: int = 1000,
    ) -> bytes:
        """Return a span of a series as an Arrow IPC stream, for ``polars.read_ipc_stream`` and pyarrow."""
        options = {"direction": direction, "start_ns": start_ns, "end_ns": end_ns, "points": points, "format": "arrow"}
        query = urlencode({key: value for key, value in options.items() if value is not None})
        place = f"/captures/{quote(capture_id, safe='')}/connections/{connection}"
        return self._send("GET", f"{place}/series/{quote(name, safe='')}?{query}")

    def delete(self, capture_id: str) -> None:
        """Delete a capture and everything derived from it."""
        self._send("DELETE", f"/captures/{quote(capture_id, safe='')}")

    def _dictionary(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = self._ask("GET", path)
        return found

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        return json.loads(self._send(method, path, data, kind="application/json"))

    def _send(
        self, method: str, path: str, body: bytes | IO[bytes] | None = None, *, kind: str = "application/octet-stream"
    ) -> bytes:
        headers = {**self._headers, "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = kind
        if body is not None and not isinstance(body, bytes):
            # The length of a pipe's content is unknown, so it is sent in chunks.
            size = os.fstat(body.fileno()).st_size
            headers |= {"Content-Length": str(size)} if size else {}
        try:
            self._connection.request(method, f"/api/v1{path}", body, headers)
            answer: HTTPResponse = self._connection.getresponse()
            data = answer.read()
        except (OSError, HTTPException) as error:
            self._connection.close()
            raise ServiceError(0, f"the service cannot be reached: {error}") from error
        if answer.status < 400:
            return data
        raise _refusal(answer.status, data)


def _refusal(status: int, data: bytes) -> ServiceError:
    try:
        problem = json.loads(data)
        return ServiceError(status, str(problem["detail"]), problem)
    except (ValueError, KeyError, TypeError):
        return ServiceError(status, f"the service answered with status {status}")
