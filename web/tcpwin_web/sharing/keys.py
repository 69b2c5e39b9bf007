"""The secret behind share link keys: in its own file, neither in the database nor in its backups.

With the database alone, nobody can map a link's addresses back to real ones.
"""

import hmac
import os
import secrets
from pathlib import Path

from tcpwin_web.anonymise.cryptopan import KEY_BYTES

NAME = "addresses"


class AddressKeys:
    """Crypto-PAn keys of share links."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._secret = b""

    def prepare(self) -> None:
        """Read the secret, or create it; make the file readable for its owner only, even if it existed."""
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
        """Return the key of a link, which stays the same as long as the secret does."""
        return hmac.digest(self._secret, share_id.encode(), "sha256")

    def _make(self) -> None:
        new = self._path.with_suffix(".new")
        with os.fdopen(os.open(new, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path)
