"""Addresses of captures on web servers and in object stores, and the stores themselves.

In: an address. Out: what it is of, or an open store. Credentials and endpoints come from the environment, as the
clouds' own tools take them.
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
    """A path as it is; an address without what may be secret in it: the query, which signs some, and a password."""
    if not is_address(address):
        return address
    from urllib.parse import urlsplit

    told = urlsplit(address)
    return f"{told.scheme}://{told.netloc.rpartition('@')[2]}{told.path}"


def open_store(address: str) -> tuple[Any, str, str]:
    """The store of an address, the store's own address, and the path within; needs obstore.

    Raises:
        SourceError: it is no address of a store, or obstore is not installed.
    """
    if find_spec("obstore") is None:
        raise SourceError(f"{public_name(address)} needs obstore: pip install 'tcpwin[fleet]'")
    from urllib.parse import urlsplit

    from obstore.store import from_url

    told = urlsplit(address)
    if not told.netloc:
        raise SourceError(f"{public_name(address)}: names no bucket or host")
    if told.query or told.fragment:
        raise SourceError(f"{public_name(address)}: a ? or # in an address is not understood")
    root = f"{told.scheme}://{told.netloc}"
    options: dict[str, Any] = {"client_options": {"allow_http": True}} if told.scheme == "http" else {}
    try:
        return from_url(root, **options), root, told.path.lstrip("/")
    except Exception as failure:
        if not is_of_store(failure):
            raise
        raise SourceError(f"{public_name(address)}: {store_reason(failure)}") from None


def is_of_store(failure: Exception) -> bool:
    """Whether it is the store that failed."""
    from obstore.exceptions import BaseError

    return isinstance(failure, BaseError | OSError | ValueError)


def store_reason(failure: Exception) -> str:
    """The first line, without the client's own report of what it is made of."""
    return re.split(r"\n|\s*Debug source", str(failure))[0][:300]
