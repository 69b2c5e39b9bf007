"""Rate limits per caller: by address, and by the token or login shown.

Counted on a monotonic clock: setting the wall clock back must lock nobody out.
"""

import ipaddress
import math
import time
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import NoReturn

from fastapi import HTTPException, Request
from limits import RateLimitItem, parse

COUNTED_IPV6_BITS = 64
"""Prefix that a site gives to one network (RFC 4291 section 2.5.4): its addresses count as one."""
MOST_COUNTED = 100_000
"""Maximum number of callers remembered; those whose last action is oldest are forgotten first."""


class Rates:
    """Counts actions per caller in a sliding window."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, **rates: str) -> None:
        self._clock = clock
        self._rates: dict[str, RateLimitItem] = {name: parse(rate) for name, rate in rates.items()}
        self._times: dict[tuple[str, str], deque[float]] = {}

    def take(self, name: str, request: Request) -> None:
        """Count an action.

        Raises:
            HTTPException: 429, there were too many.
        """
        self.require(name, request)
        for key in _counted(request):
            times = self._times.pop((name, key), None) or deque()
            times.append(self._clock())
            # Keep callers in order of their last action.
            self._times[name, key] = times
        while len(self._times) > MOST_COUNTED:
            del self._times[next(iter(self._times))]

    def require(self, name: str, request: Request) -> None:
        """Raise as `take` does if the limit is reached, without counting."""
        rate = self._rates[name]
        waits = [self._wait(name, key, rate) for key in _counted(request)]
        if max(waits) > 0:
            self._refuse(rate, max(waits))

    def _wait(self, name: str, key: str, rate: RateLimitItem) -> float:
        """Return the seconds until the next action is allowed; 0 if it is now."""
        times = self._times.get((name, key))
        if times is None:
            return 0
        now, seconds = self._clock(), rate.get_expiry()
        while times and times[0] <= now - seconds:
            times.popleft()
        if not times:
            del self._times[name, key]
        return times[-rate.amount] + seconds - now if len(times) >= rate.amount else 0

    def _refuse(self, rate: RateLimitItem, wait: float) -> NoReturn:
        raise HTTPException(
            429, f"Too many requests; the limit is {rate}.", {"Retry-After": str(max(math.ceil(wait), 1))}
        )


def _counted(request: Request) -> list[str]:
    """Return the keys that count for a request: its address, and its login or token if any."""
    credential = request.scope.get("state", {}).get("credential")
    return [counted_address(request), *([f"credential {credential}"] if credential else [])]


def counted_address(request: Request) -> str:
    """Return the caller's address; addresses of one IPv6 network count as one."""
    return network_of(address_of(request))


@lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """Return an address as it is counted: the network of an IPv6 address."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is None:
        return str(ipaddress.ip_network((found, COUNTED_IPV6_BITS), strict=False))
    return address


def address_of(request: Request) -> str:
    """Return the caller's address."""
    return request.client.host if request.client else "unknown"
