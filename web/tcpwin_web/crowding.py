"""Track open connections by address, and close idle ones of the most crowded address when there are too many.

The same goes for responses that wait in memory for their readers. A new connection may be the owner's, which shows
only with its first request. It is therefore accepted, and the oldest idle connection of the most crowded address is
closed instead. Half of the room is for connections whose sender is unknown: if requests of tokens filled it all, every
new connection would displace the one before, unread.
"""

from collections import Counter
from typing import Protocol

from tcpwin_web.ledger import MOST_CONNECTIONS, MOST_OF_ADDRESS, MOST_UNREAD_BYTES, Ledger

TOKEN_RANK, OWNER_RANK = 2, 3
CLOSED_PART = 64
"""Part of the connections that is closed at once, because finding them takes long if there are thousands."""
OWNER_ADDRESSES = 64


class Client(Protocol):
    """A connection."""

    @property
    def rank(self) -> int:
        """How much it matters.

        0: idle; 1: not read yet, or answering somebody without a token; 2: answering a token of limited scope; 3: the
        owner's.
        """
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
        self._of_owner: dict[str, None] = {}
        """Addresses of the owner, the last one last: their next connection may be the owner's, too."""
        self._unread: dict[Client, tuple[str, int]] = {}

    def add(self, client: Client, address: str, *, is_proxy: bool = False) -> None:
        """Add a new connection; close others, or this one, if there are too many.

        Args:
            is_proxy: serves many people: any number of connections from its address is accepted.
        """
        of_address = self._open.setdefault(address, {})
        of_address[client] = None
        self._count += 1
        if not is_proxy and len(of_address) > self._of_address:
            self._make_room({address: of_address}, client, self._of_address)
        elif self._count > self._most:
            self._make_room(self._open, client, self._most)

    def remove(self, client: Client, address: str) -> None:
        """Remove a connection that has ended or is ending; does nothing if it was removed before."""
        of_address = self._open.get(address, {})
        if client in of_address:
            if client.rank == OWNER_RANK:
                self._of_owner.pop(address, None)
                self._of_owner[address] = None
                if len(self._of_owner) > OWNER_ADDRESSES:
                    del self._of_owner[next(iter(self._of_owner))]
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

    def _make_room(self, crowds: dict[str, dict[Client, None]], new: Client, most: int) -> None:
        """Close connections of these addresses, which have more than `most`."""
        unknown: list[tuple[bool, int, int, str, Client]] = []
        of_token: dict[str, list[tuple[str, Client]]] = {}
        for address, clients in crowds.items():
            is_of_owner = address in self._of_owner
            for each in clients:
                rank = each.rank
                # Spare the new connection, which has not sent its request yet, and the only request of an address.
                if rank < TOKEN_RANK and each is not new and (rank == 0 or len(clients) > 1):
                    unknown.append((is_of_owner, rank, -len(clients), address, each))
                elif rank == TOKEN_RANK:
                    of_token.setdefault(each.credential or address, []).append((address, each))
        # The only request of a token is spared as well.
        asked = max(of_token.values(), key=len, default=[])[:-1]
        if unknown and (len(unknown) > most // 2 or not asked):
            chosen = [each[3:] for each in sorted(unknown, key=lambda each: each[:3])]
        else:
            chosen = asked or [(address, new) for address, clients in crowds.items() if new in clients]
        for address, each in chosen[: most // CLOSED_PART + 1]:
            self.remove(each, address)
            each.drop()
