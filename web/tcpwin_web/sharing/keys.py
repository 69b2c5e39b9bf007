"""The secret from which the keys of share links are made: in a file of its own, not in the database nor in its copies.

Whoever has the database alone cannot tell which real address a link's address stands for.
"""

import hmac
import os
import secrets
from pathlib import Path

from tcpwin_web.anonymise.cryptopan import KEY_BYTES

NAME = "addresses"


class AddressKeys:
    """A key of Crypto-PAn for each share link."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._secret = b""

    def prepare(self) -> None:
        """Read the secret; make it where there is none. Only its owner may read it, also where it was there before."""
        try:
            opened = os.open(self._path, os.O_RDONLY)
        except FileNotFoundError:
            self._make()
            opened = os.open(self._path, os.O_RDONLY)
        with os.fdopen(opened, "rb") as file:
            os.fchmod(file.fileno(), 0o600)
            self._secret = file.read()
        if len(self._secret) != KEY_BYTES:
            raise OSError(None, f"{self._path.name} holds no key of {KEY_BYTES} bytes")

    def of(self, share_id: str) -> bytes:
        """The key of one link: the same as long as the secret is."""
        return hmac.digest(self._secret, share_id.encode(), "sha256")

    def _make(self) -> None:
        new = self._path.with_suffix(".new")
        with os.fdopen(os.open(new, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path)
