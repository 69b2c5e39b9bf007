"""How often one address may do something, and how long the body of a request that is no upload may be."""

from fastapi import HTTPException, Request
from limits import RateLimitItem, parse
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 1 << 20


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
        rate = self._rates[name]
        if not self._limiter.hit(rate, name, address_of(request)):
            raise HTTPException(429, f"Too many: {rate} are allowed.", {"Retry-After": str(rate.get_expiry())})

    def is_over(self, name: str, request: Request) -> bool:
        """Whether there were too many already; counts nothing."""
        return not self._limiter.test(self._rates[name], name, address_of(request))


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
                raise HTTPException(413, f"The body may have {MAX_BODY_BYTES:,} bytes at most.")
            return message

        await self._app(scope, receive_some, send)
