"""Track open connections by address, and close idle ones of the most crowded address when there are too many.

The same goes for responses that wait in memory for their readers. A new connection may be the owner's, which shows
only with its first request. It is therefore accepted, and the oldest idle connection of the most crowded address is
closed instead.
"""

from collections import Counter
from typing import Protocol

from tcpwin_web.ledger import MOST_CONNECTIONS, MOST_OF_ADDRESS, MOST_UNREAD_BYTES, Ledger

OWNER_RANK = 3


class Client(Protocol):
    """A connection."""

    @property
    def rank(self) -> int:
        """0: idle; 1: answering somebody without a token; 2: answering a token of limited scope; 3: the owner's."""
        ...

    @property
    def credential(self) -> str | None:
        """The token or login that its request shows."""
        ...

    def drop(self) -> None:
        """Close it at once."""
        ...


class Crowd:
    """All open connections of a service."""

    def __init__(self, ledger: Ledger | None = None) -> None:
        self._most = MOST_CONNECTIONS if ledger is None else ledger.connections
        self._of_address = MOST_OF_ADDRESS if ledger is None else ledger.of_address
        self._open: dict[str, dict[Client, None]] = {}
        self._count = 0
        self._unread: dict[Client, tuple[str, int]] = {}

    def add(self, client: Client, address: str, *, is_proxy: bool = False) -> None:
        """Add a new connection; close another one, or this one, if there are too many.

        Args:
            is_proxy: serves many people: any number of connections from its address is accepted.
        """
        of_address = self._open.setdefault(address, {})
        of_address[client] = None
        self._count += 1
        if not is_proxy and len(of_address) > self._of_address:
            self._close(_oldest(of_address, 0) or client)
        elif self._count > self._most:
            self._close(self._choose(client) or client)

    def remove(self, client: Client, address: str) -> None:
        """Remove a connection that has ended or is ending; does nothing if it was removed before."""
        of_address = self._open.get(address, {})
        if client in of_address:
            del of_address[client]
            self._count -= 1
            if not of_address:
                del self._open[address]

    def hold_unread(self, client: Client, address: str, size_bytes: int) -> None:
        """Count a response that its client has yet to read; close connections if all of these take too much memory."""
        self._unread[client] = address, size_bytes
        while sum(size for _, size in self._unread.values()) > MOST_UNREAD_BYTES:
            totals: Counter[str] = Counter()
            for each, (owner, size) in self._unread.items():
                totals[owner] += size * (each.rank < OWNER_RANK)
            most = max(totals, key=lambda each: totals[each])
            ours = (each for each, (owner, _) in self._unread.items() if owner == most)
            found = min(ours, key=lambda each: each.rank)
            del self._unread[found]
            found.drop()

    def forget_unread(self, client: Client) -> None:
        """Stop counting a response that was read or whose connection is closed."""
        self._unread.pop(client, None)

    def _close(self, client: Client) -> None:
        for address, clients in self._open.items():
            if client in clients:
                self.remove(client, address)
                break
        client.drop()

    def _choose(self, new: Client) -> Client | None:
        """Return the connection that matters least, of the address or token with most; None if all are needed."""
        crowded = sorted(self._open.values(), key=len, reverse=True)
        for rank in (0, 1):
            for clients in crowded:
                # Spare the only request of an address, and the new connection, which has not sent one yet.
                if (rank == 0 or len(clients) > 1) and (found := _oldest(clients, rank)) not in (None, new):
                    return found
        of_token: dict[str, list[Client]] = {}
        for address, clients in self._open.items():
            for each in clients:
                if each.rank < OWNER_RANK and each is not new:
                    of_token.setdefault(each.credential or address, []).append(each)
        most = max(of_token.values(), key=len, default=[])
        return most[0] if len(most) > 1 else None


def _oldest(clients: dict[Client, None], rank: int) -> Client | None:
    return next((each for each in clients if each.rank <= rank), None)
