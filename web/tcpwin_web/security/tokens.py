"""API tokens as rows: create, list, revoke. A secret is shown once and stored as a hash.

Requests are checked from memory: only one service works on a database, and every change goes through it.
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
"""Prefix of each secret, by which source code scanners recognise it."""
SECRET_BYTES = 32
DAY_NS = 86_400 * 10**9
LISTED_DAYS = 90
"""How long expired and revoked tokens are still listed."""
MOST_TOKENS = 1000


@dataclass(frozen=True)
class Token:
    """A token's rights and lifetime."""

    id: str
    name: str
    scope: Scope
    created_ns: int
    expires_ns: int
    revoked_ns: int | None

    @property
    def why_over(self) -> str | None:
        """Reason why it is no longer valid, as a sentence; None if it is."""
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
        """Load the tokens from the database."""
        async with self._database.begin() as session:
            rows = (await session.scalars(select(ApiToken))).all()
        self._by_hash = {row.secret_sha256: _token_of(row) for row in rows}
        self._by_id = {token.id: token for token in self._by_hash.values()}

    def find(self, secret: str) -> Token | None:
        """Return the token with this secret, even if it is no longer valid; None if it is unknown."""
        return self._by_hash.get(_hash(secret))

    def get(self, token_id: str) -> Token | None:
        """Return the token with this id, even if it is no longer valid."""
        return self._by_id.get(token_id)

    def list(self) -> Sequence[Token]:
        """All known tokens, newest first."""
        return sorted(self._by_id.values(), key=lambda token: (-token.created_ns, token.id))

    async def create(self, name: str, scope: Scope, *, days: float) -> tuple[Token, str]:
        """Create a token; return it with its secret, which cannot be shown again.

        Raises:
            ConflictError: there are `MOST_TOKENS` already.
        """
        secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
        async with self._database.change() as session:
            if (await session.scalar(select(func.count()).select_from(ApiToken)) or 0) >= MOST_TOKENS:
                raise ConflictError(f"there are {MOST_TOKENS:,} tokens already, including recently revoked ones")
            row = ApiToken(
                name=name, scope=scope, secret_sha256=_hash(secret), expires_ns=now_ns() + int(days * DAY_NS)
            )
            session.add(row)
        await self.load()
        return self._by_id[row.id], secret

    async def revoke(self, token_id: str) -> bool:
        """Revoke a token; return False if no valid token has this id."""
        async with self._database.change() as session:
            row = await session.get(ApiToken, token_id)
            if row is None or row.revoked_ns is not None:
                return False
            row.revoked_ns = now_ns()
        await self.load()
        return True

    async def sweep(self) -> None:
        """Delete tokens that have been invalid for `LISTED_DAYS`."""
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
