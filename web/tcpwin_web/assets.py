"""Static files of the pages: styles, scripts, plotly.js. Read and compressed once, and cached by browsers indefinitely.

A file's address contains part of its hash, so that each version has its own address.
"""

import gzip
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from importlib.resources import files

from fastapi import HTTPException, Request, Response

from tcpwin.figures import colours_css
from tcpwin.figures.assets import read_plotly

PREFIX = "/static/"
PLOTLY_NAME = "plotly.min.js"
IMMUTABLE = "public, max-age=31536000, immutable"
"""A year: the longest lifetime that caches need to support (RFC 9111)."""
REVALIDATED = "no-cache"
"""For addresses without a hash: browsers must revalidate their copy."""


@dataclass(frozen=True)
class Asset:
    """A file and its headers."""

    content: bytes
    media: str

    @cached_property
    def version(self) -> str:
        """Part of its hash."""
        return sha256(self.content).hexdigest()[:12]

    @cached_property
    def packed(self) -> bytes:
        """The gzip-compressed content."""
        return gzip.compress(self.content, 9, mtime=0)


@cache
def assets() -> Mapping[str, Asset]:
    """All files by name."""
    found = {
        each.name: each.read_bytes() for each in files("tcpwin_web").joinpath("static").iterdir() if each.is_file()
    }
    found[PLOTLY_NAME] = read_plotly()
    found["colours.css"] = colours_css().encode()
    return {name: Asset(content, mimetypes.guess_type(name)[0] or "text/plain") for name, content in found.items()}


def asset_url(name: str) -> str:
    """Return a file's address, which changes with its content."""
    return f"{PREFIX}{name}?v={assets()[name].version}"


def send_asset(request: Request, name: str) -> Response:
    """Send a file, compressed if the browser accepts that."""
    asset = assets().get(name)
    if asset is None:
        raise HTTPException(404)
    tag = f'W/"{asset.version}"'
    headers = {
        "Cache-Control": IMMUTABLE if request.query_params.get("v") == asset.version else REVALIDATED,
        "ETag": tag,
        "Vary": "Accept-Encoding",
    }
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(asset.packed, media_type=asset.media, headers={**headers, "Content-Encoding": "gzip"})
    return Response(asset.content, media_type=asset.media, headers=headers)
