"""How often one address may do something, and how long the body of a request that is no upload may be."""

import ipaddress
import math
import time
from typing import NoReturn

from fastapi import HTTPException, Request
from limits import RateLimitItem, parse
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 1 << 20
COUNTED_IPV6_BITS = 64
"""Of an address, those that a site gives to one network (RFC 4291 section 2.5.4): its hosts count as one."""


class Rates:
    """Counts what each address does."""

    def __init__(self, **rates: str) -> None:
        self._limiter = MovingWindowRateLimiter(MemoryStorage())
        self._rates: dict[str, RateLimitItem] = {name: parse(rate) for name, rate in rates.items()}

    def take(self, name: str, request: Request) -> None:
        """Count one.

        Raises:
            HTTPException: 429, there were too many.
        """
        if not self._limiter.hit(self._rates[name], name, _counted(request)):
            self.refuse(name, request)

    def require(self, name: str, request: Request) -> None:
        """Count nothing, and raise as `take` does where there were too many already."""
        if not self._limiter.test(self._rates[name], name, _counted(request)):
            self.refuse(name, request)

    def refuse(self, name: str, request: Request) -> NoReturn:
        """Say that there were too many, and when the next one is taken."""
        rate = self._rates[name]
        reset = self._limiter.get_window_stats(rate, name, _counted(request)).reset_time
        wait = max(math.ceil(reset - time.time()), 1)
        raise HTTPException(429, f"Too many requests; the limit is {rate}.", {"Retry-After": str(wait)})


def _counted(request: Request) -> str:
    """Whose count it is: one who has a network of IPv6 has more addresses in it than could be counted."""
    address = address_of(request)
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is None:
        return str(ipaddress.ip_network((found, COUNTED_IPV6_BITS), strict=False))
    return address


def address_of(request: Request) -> str:
    """The caller's address."""
    return request.client.host if request.client else "unknown"


class BodyLimit:
    """ASGI middleware: refuse long bodies, but of uploads, which have limits of their own."""

    def __init__(self, app: ASGIApp, uploads: tuple[str, ...]) -> None:
        self._app = app
        self._uploads = uploads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].endswith(self._uploads):
            await self._app(scope, receive, send)
            return
        received = 0

        async def receive_some() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > MAX_BODY_BYTES:
                raise HTTPException(413, f"The request body is larger than {MAX_BODY_BYTES:,} bytes.")
            return message

        await self._app(scope, receive_some, send)
