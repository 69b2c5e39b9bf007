"""Addresses of captures on web servers and in object stores, and the stores themselves.

In: an address. Out: its kind, or an open store. Credentials and endpoints come from the same environment variables as
for
the cloud vendors' tools.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any

from tcpwin.errors import SourceError

WEB = ("https", "http")
SCHEMES = ("s3", "gs", "az", *WEB)
CHUNK_BYTES = 8 << 20


def is_address(source: str) -> bool:
    """Whether a source is an address of a store or a server."""
    return source.partition("://")[0].lower() in SCHEMES and "://" in source


def public_name(address: str) -> str:
    """Return a path unchanged, and an address without its query (which may contain a signature) and password."""
    if not is_address(address):
        return address
    from urllib.parse import urlsplit

    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def open_store(address: str) -> tuple[Any, str, str]:
    """Return an address's store, the store's address, and the path within it; needs obstore.

    Raises:
        SourceError: not the address of a store, or obstore is not installed.
    """
    if find_spec("obstore") is None:
        raise SourceError(f"{public_name(address)} needs obstore: pip install 'tcpwin[fleet]'")
    from urllib.parse import urlsplit

    from obstore.store import from_url

    parts = urlsplit(address)
    if not parts.netloc:
        raise SourceError(f"{public_name(address)}: names no bucket or host")
    if parts.query or parts.fragment:
        raise SourceError(f"{public_name(address)}: ? and # are not supported in an address")
    root = f"{parts.scheme}://{parts.netloc}"
    options: dict[str, Any] = {"client_options": {"allow_http": True}} if parts.scheme == "http" else {}
    try:
        return from_url(root, **options), root, parts.path.lstrip("/")
    except Exception as failure:
        if not is_of_store(failure):
            raise
        raise SourceError(f"{public_name(address)}: {store_reason(failure)}") from None


def is_of_store(failure: Exception) -> bool:
    """Whether the store raised this exception."""
    from obstore.exceptions import BaseError

    return isinstance(failure, BaseError | OSError | ValueError)


def store_reason(failure: Exception) -> str:
    """Return the first line, without the client's description of itself."""
    return re.split(r"\n|\s*Debug source", str(failure))[0][:300]
