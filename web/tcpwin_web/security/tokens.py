"""API tokens as rows: made, listed, revoked, found by their secret, which is shown once and kept as a hash.

What each request asks is answered from memory: one service works on a database, and every change goes through it.
"""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import delete, func, select

from tcpwin.units import date_text
from tcpwin_web.captures import ConflictError
from tcpwin_web.security.scopes import Scope
from tcpwin_web.storage import Database
from tcpwin_web.storage.models import ApiToken, now_ns

PREFIX = "tcpwin_"
"""Of each secret, so that scanners of source code know one when they see it."""
SECRET_BYTES = 32
DAY_NS = 86_400 * 10**9
LISTED_DAYS = 90
"""For which a token that is over is still listed."""
MOST_TOKENS = 1000


@dataclass(frozen=True)
class Token:
    """What a token allows, and until when."""

    id: str
    name: str
    scope: Scope
    created_ns: int
    expires_ns: int
    revoked_ns: int | None

    @property
    def why_over(self) -> str | None:
        """Why it opens nothing any more, in a sentence; None where it does."""
        if self.revoked_ns is not None:
            return f"This token was revoked on {date_text(self.revoked_ns)}."
        if self.expires_ns <= now_ns():
            return f"This token expired on {date_text(self.expires_ns)}."
        return None


class Tokens:
    """All API tokens."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._by_hash: dict[str, Token] = {}
        self._by_id: dict[str, Token] = {}

    async def load(self) -> None:
        """Learn from the database which there are."""
        async with self._database.begin() as session:
            rows = (await session.scalars(select(ApiToken))).all()
        self._by_hash = {row.secret_sha256: _token_of(row) for row in rows}
        self._by_id = {token.id: token for token in self._by_hash.values()}

    def find(self, secret: str) -> Token | None:
        """The token of a secret, also where it is over; None where there never was one, or long ago."""
        return self._by_hash.get(_hash(secret))

    def get(self, token_id: str) -> Token | None:
        """The token of an id, also where it is over."""
        return self._by_id.get(token_id)

    def list(self) -> Sequence[Token]:
        """All that are known, the newest first."""
        return sorted(self._by_id.values(), key=lambda token: (-token.created_ns, token.id))

    async def create(self, name: str, scope: Scope, *, days: float) -> tuple[Token, str]:
        """Make a token and return it with its secret, which cannot be shown again.

        Raises:
            ConflictError: there are `MOST_TOKENS` already.
        """
        secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
        async with self._database.change() as session:
            if (await session.scalar(select(func.count()).select_from(ApiToken)) or 0) >= MOST_TOKENS:
                raise ConflictError(
                    f"there are {MOST_TOKENS:,} tokens already, those that were revoked lately among them"
                )
            row = ApiToken(
                name=name, scope=scope, secret_sha256=_hash(secret), expires_ns=now_ns() + int(days * DAY_NS)
            )
            session.add(row)
        await self.load()
        return self._by_id[row.id], secret

    async def revoke(self, token_id: str) -> bool:
        """End a token; False if none of that id is valid."""
        async with self._database.change() as session:
            row = await session.get(ApiToken, token_id)
            if row is None or row.revoked_ns is not None:
                return False
            row.revoked_ns = now_ns()
        await self.load()
        return True

    async def sweep(self) -> None:
        """Delete those that are over for `LISTED_DAYS`."""
        before = now_ns() - LISTED_DAYS * DAY_NS
        async with self._database.change() as session:
            await session.execute(
                delete(ApiToken).where((ApiToken.expires_ns < before) | (ApiToken.revoked_ns < before))
            )
        await self.load()


def _token_of(row: ApiToken) -> Token:
    return Token(row.id, row.name, Scope(row.scope), row.created_ns, row.expires_ns, row.revoked_ns)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
