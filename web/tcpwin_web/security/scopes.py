"""Scopes of callers: each includes those before it. Requests not named here need the last one."""

import re
from enum import StrEnum

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_CAPTURE = r"/api/v1/captures/[^/]+"


class Scope(StrEnum):
    """Access level. read: all captures and results; upload: also add, analyse, name and annotate; admin: everything."""

    READ = "read"
    UPLOAD = "upload"
    ADMIN = "admin"

    def includes(self, needed: "Scope") -> bool:
        """Whether this scope includes that one."""
        order = list(Scope)
        return order.index(self) >= order.index(needed)


_RESUMABLE = rf"{_CAPTURE}/uploads/[^/]+"
_TWIN = rf"{_CAPTURE}/connections/[^/]+/twin"
_READ_BY_ADMINS = re.compile(r"/tokens|/api/v1/(tokens|audit)")
_READERS = (("POST", re.compile(r"/logout")),)
_UPLOADERS = (
    ("POST", re.compile(rf"/upload|/api/v1/(uploads|captures)|{_CAPTURE}/(analysis|notes|uploads)|{_RESUMABLE}")),
    ("POST", re.compile(_TWIN)),
    ("DELETE", re.compile(_TWIN)),
    ("PUT", re.compile(rf"{_CAPTURE}/files")),
    ("PATCH", re.compile(rf"{_CAPTURE}|{_RESUMABLE}")),
    ("DELETE", re.compile(rf"{_CAPTURE}/analysis|{_RESUMABLE}")),
)


def needed_scope(method: str, path: str) -> Scope:
    """Return the scope that a request needs."""
    if method in SAFE_METHODS:
        return Scope.ADMIN if _READ_BY_ADMINS.fullmatch(path.rstrip("/")) else Scope.READ
    for scope, allowed in ((Scope.READ, _READERS), (Scope.UPLOAD, _UPLOADERS)):
        if any(method == each and form.fullmatch(path) for each, form in allowed):
            return scope
    return Scope.ADMIN
