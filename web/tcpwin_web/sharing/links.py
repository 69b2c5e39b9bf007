"""Share links as rows: create, list, open, revoke. A link's secret is shown once and stored as a hash."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import delete, select

from tcpwin_web.anonymise.cryptopan import CryptoPan
from tcpwin_web.captures import ConflictError, NotFoundError
from tcpwin_web.sharing.keys import AddressKeys
from tcpwin_web.storage import Database
from tcpwin_web.storage.models import Capture, Share, now_ns

SECRET_BYTES = 32
DAY_NS = 86_400 * 10**9


@dataclass(frozen=True)
class Opened:
    """Target of a link: a capture, and the key that maps its addresses if they are hidden."""

    capture: Capture
    expires_ns: int
    link_id: str
    address_key: str | None

    @property
    def anonymise(self) -> CryptoPan | None:
        """The mapping of the key."""
        return None if self.address_key is None else CryptoPan(bytes.fromhex(self.address_key))


class Links:
    """All share links."""

    def __init__(self, database: Database, keys: AddressKeys) -> None:
        self._database = database
        self._keys = keys

    async def create(self, capture_id: str, *, days: float, anonymise: bool) -> tuple[Share, str]:
        """Create a link; return it with its secret, which cannot be shown again.

        Raises:
            NotFoundError, ConflictError: there is no such capture, or it has no results to share.
        """
        secret = secrets.token_urlsafe(SECRET_BYTES)
        async with self._database.change() as session:
            capture = await session.get(Capture, capture_id)
            if capture is None:
                raise NotFoundError(capture_id)
            if not capture.has_results:
                raise ConflictError(f"only a finished analysis can be shared; this one is {capture.status}")
            share = Share(
                capture_id=capture_id,
                secret_sha256=_hash(secret),
                expires_ns=now_ns() + int(days * DAY_NS),
                is_anonymised=anonymise,
            )
            session.add(share)
        return share, secret

    async def list(self, capture_id: str) -> Sequence[Share]:
        """Return the capture's unexpired share links.

        Raises:
            NotFoundError: there is no such capture.
        """
        async with self._database.begin() as session:
            if await session.get(Capture, capture_id) is None:
                raise NotFoundError(capture_id)
            query = select(Share).where(Share.capture_id == capture_id, Share.expires_ns > now_ns())
            return (await session.scalars(query.order_by(Share.created_ns))).all()

    async def revoke(self, share_id: str) -> bool:
        """Revoke a link; return False if no link has this id."""
        async with self._database.change() as session:
            share = await session.get(Share, share_id)
            if share is None:
                return False
            await session.delete(share)
        return True

    async def open(self, secret: str) -> Opened | None:
        """Return a link's target; None if it is revoked, has expired, or never existed."""
        async with self._database.begin() as session:
            share = await session.scalar(select(Share).where(Share.secret_sha256 == _hash(secret)))
            if share is None or share.expires_ns < now_ns():
                return None
            capture = await session.get(Capture, share.capture_id)
        if capture is None or not capture.has_results:
            return None
        address_key = self._keys.of(share.id).hex() if share.is_anonymised else None
        return Opened(capture, share.expires_ns, share.id, address_key)

    async def sweep(self) -> None:
        """Delete expired links."""
        async with self._database.change() as session:
            await session.execute(delete(Share).where(Share.expires_ns < now_ns()))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
