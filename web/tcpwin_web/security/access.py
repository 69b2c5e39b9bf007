"""Identify the caller by a token or a login's cookie; without a configured token, every local caller has full access.

ASGI middleware. If a token is set, only health checks, the login and share links work without one; pages of other
sites may not change anything.
"""

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from fastapi import HTTPException, Request
from fastapi.responses import RedirectResponse, Response
from itsdangerous import BadSignature, URLSafeTimedSerializer
from starlette.types import ASGIApp, Receive, Scope, Send

from tcpwin_web import problems
from tcpwin_web.audit import AuditLog
from tcpwin_web.limiting import Rates, counted_address
from tcpwin_web.security import scopes
from tcpwin_web.security.tokens import Token, Tokens
from tcpwin_web.settings import Settings

COOKIE = "tcpwin_session"
CSRF_HEADER = "x-csrf-token"
LOGIN_DIGITS = 12
OPEN_PATHS = ("/healthz", "/readyz", "/login")
GUEST_PREFIXES = ("/shared/", "/api/v1/shared/")
OPEN_PREFIXES = ("/static/", *GUEST_PREFIXES)
"""Routes that need no token. A share link's secret is checked when the link is opened."""


@dataclass(frozen=True)
class Identity:
    """Who is calling.

    Attributes:
        actor: token, session or local.
        login: id of the session, which is not enough to take it over.
        scope: what they may do.
        token: id of the API token that they showed or logged in with.
    """

    actor: str
    login: str | None = None
    scope: scopes.Scope = scopes.Scope.ADMIN
    token: str | None = None


@dataclass(frozen=True)
class Opened:
    """A login: its cookie's value, and the id of the API token it was made with."""

    session: str
    token: str | None


class Gate:
    """Identifies callers, and creates and checks logins."""

    def __init__(self, settings: Settings, tokens: Tokens) -> None:
        self._tokens = tokens
        self._token = settings.secret
        self._hosts = {host.lower() for host in settings.trusted_hosts}
        self._seconds = settings.session_hours * 3600
        # Derived from the token: changing the token ends every login.
        key = hashlib.sha256(b"tcpwin session" + (self._token or secrets.token_hex(32)).encode()).hexdigest()
        self._signer = URLSafeTimedSerializer(key, salt="session")
        self._key = key.encode()
        self._ended: dict[str, float] = {}
        """Logins that were logged out, remembered until they would have expired."""

    @property
    def is_closed(self) -> bool:
        """Whether a token is needed."""
        return self._token is not None

    def is_token(self, shown: str) -> bool:
        """Whether this is the service's token."""
        return self._token is not None and hmac.compare_digest(shown.encode(), self._token.encode())

    def is_host(self, host: str) -> bool:
        """Whether the service may be called by this name (the Host header)."""
        name = host.lower()
        name = name.rpartition(":")[0] if name.rpartition(":")[2].isdigit() and not name.endswith("]") else name
        return "*" in self._hosts or name in self._hosts

    def end_session(self, request: Request) -> None:
        """End a login, wherever its cookie was copied to."""
        name, now = self._session(request), time.monotonic()
        self._ended = {each: until for each, until in self._ended.items() if until > now}
        if name is not None:
            self._ended[name] = now + self._seconds

    def open_login(self, shown: str) -> Opened | None:
        """Log in a caller who shows the service's token or a valid API token; return None otherwise."""
        name = secrets.token_urlsafe(16)
        if self.is_token(shown):
            return Opened(self._signer.dumps(name), None)
        token = self._valid(self._tokens.find(shown))
        # A login ends with its token, which the name in the cookie identifies.
        return None if token is None else Opened(self._signer.dumps(f"{name}.{token.id}"), token.id)

    def shows_token(self, request: Request) -> bool:
        """Whether a token is needed and the caller shows one, right or wrong."""
        return self._token is not None and request.headers.get("authorization", "")[:7].lower() == "bearer "

    def identify(self, request: Request) -> Identity | None:
        """Identify the caller; None if the credentials are missing or wrong."""
        if self._token is None:
            return Identity("local")
        shown = self._shown(request)
        if shown is not None:
            if self.is_token(shown):
                return Identity("token")
            token = self._valid(self._tokens.find(shown))
            return None if token is None else Identity("token", scope=token.scope, token=token.id)
        name = self._session(request)
        if name is None:
            return None
        token = self._tokens.get(name.partition(".")[2])
        login = hashlib.sha256(name.encode()).hexdigest()[:LOGIN_DIGITS]
        return Identity("session", login) if token is None else Identity("session", login, token.scope, token.id)

    def over_token(self, request: Request) -> Token | None:
        """Return the API token that the caller shows if it is revoked or expired."""
        shown = self._shown(request)
        token = None if shown is None else self._tokens.find(shown)
        return None if token is None or token.why_over is None else token

    def _shown(self, request: Request) -> str | None:
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        return shown.strip() if scheme.lower() == "bearer" else None

    def _valid(self, token: Token | None) -> Token | None:
        return None if token is None or token.why_over is not None else token

    def _session(self, request: Request) -> str | None:
        try:
            name = self._signer.loads(request.cookies.get(COOKIE, ""), max_age=int(self._seconds))
        except BadSignature:
            return None
        of_token = str(name).partition(".")[2]
        if name in self._ended or (of_token and self._valid(self._tokens.get(of_token)) is None):
            return None
        return str(name)

    def csrf_token(self, request: Request) -> str:
        """Return the value that a page's forms and scripts send back to prove that they are the service's own."""
        name = self._session(request) or "local"
        return hmac.new(self._key, b"csrf" + name.encode(), "sha256").hexdigest()

    def is_own_form(self, request: Request, shown: str | None) -> bool:
        """Whether a form or script sent back its page's `csrf_token`."""
        return shown is not None and hmac.compare_digest(shown.encode(), self.csrf_token(request).encode())


class Access:
    """ASGI middleware: pass a request on, or refuse it."""

    def __init__(self, app: ASGIApp, gate: Gate, rates: Rates, audit: AuditLog) -> None:
        self._app = app
        self._gate = gate
        self._rates = rates
        self._audit = audit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        try:
            answer = self._refusal(request)
        except HTTPException as error:
            answer = problems.respond(request, error.status_code, error.detail, headers=error.headers)
        await (answer or self._app)(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        # RFC 9112 section 3.2: with several Host headers, an intermediary may have used another one.
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or not self._gate.is_host(hosts[0]):
            return problems.respond(request, 400, "Unknown host name: TCPWIN_ALLOWED_HOSTS adds names.")
        path = request.url.path
        is_open = path in OPEN_PATHS or path.startswith(OPEN_PREFIXES)
        is_guess = not is_open and self._gate.shows_token(request)
        identity = self._gate.identify(request)
        if is_guess and (identity is None or identity.token is None):
            # Beyond the limit even the service's own token is refused: otherwise a correct guess would succeed. API
            # tokens have too many random bits for that.
            self._rates.require("token", request)
        actor = None if identity is None else identity.actor
        self._describe(request, identity, is_guest=path.startswith(GUEST_PREFIXES))
        if actor is None and not is_open:
            over = self._gate.over_token(request)
            if over is not None:
                # A token that was once valid is not a guess.
                self._audit.seen(request, "token.refused", over.id)
            elif is_guess:
                self._rates.take("token", request)
                # Without waiting for the database: anyone can send many.
                self._audit.seen(request, "token.refused", is_each_noted=True)
            if problems.wants_page(path, request.headers.get("accept", "")):
                back = quote(path + (f"?{request.url.query}" if request.url.query else ""), safe="/")
                return RedirectResponse(f"/login?next={back}", 303)
            return problems.respond(
                request,
                401,
                "Send a token: Authorization: Bearer …" if over is None else str(over.why_over),
                headers={"WWW-Authenticate": "Bearer"},
            )
        if identity is not None and not is_open and (refusal := self._too_narrow(request, identity)):
            return refusal
        if request.method in scopes.SAFE_METHODS or actor == "token":
            return None
        return self._foreign(request, actor)

    def _too_narrow(self, request: Request, identity: Identity) -> Response | None:
        """Refuse what the caller's scope does not include (RFC 6750 section 3.1)."""
        needed = scopes.needed_scope(request.method, request.scope["path"])
        if identity.scope.includes(needed):
            return None
        self._audit.seen(request, "scope.refused")
        return problems.respond(
            request,
            403,
            f"This needs a token with the scope {needed}; yours has the scope {identity.scope}.",
            headers={"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{needed}"'},
        )

    def _describe(self, request: Request, identity: Identity | None, *, is_guest: bool) -> None:
        """Record the caller, for rate limits, fair scheduling and the audit log."""
        actor = "nobody" if identity is None else identity.actor
        login = None if identity is None or is_guest else identity.login
        # One login is one caller from any address; callers that share a token are distinguished by address.
        token = None if identity is None or is_guest else identity.token
        shown = f"token {token}" if token else actor
        # Anyone can make many logins with one API token, so they count as that token.
        is_login = bool(login and not token)
        name = f"login {login}" if is_login else f"{'guest' if is_guest else shown} {counted_address(request)}"
        credential = None if actor in ("local", "nobody") or is_guest else login if is_login else shown
        request.scope.setdefault("state", {}).update(
            actor=actor,
            login=login,
            token=token,
            scope=None if identity is None or is_guest else identity.scope,
            is_guest=is_guest,
            caller=name,
            credential=credential,
        )

    def _foreign(self, request: Request, actor: str | None) -> Response | None:
        """Refuse requests that another site's page sends with this browser's cookies, or to a local address."""
        origin = request.headers.get("origin")
        site = request.headers.get("sec-fetch-site", "same-origin")
        is_foreign = site not in ("same-origin", "none") or (
            origin is not None and urlsplit(origin).netloc != request.headers.get("host", "")
        )
        if is_foreign:
            return problems.respond(request, 403, "A page of another site sent this request.")
        is_script = actor == "session" and request.url.path.startswith("/api/")
        if is_script and not self._gate.is_own_form(request, request.headers.get(CSRF_HEADER)):
            return problems.respond(request, 403, "X-CSRF-Token is missing, or belongs to an earlier login.")
        return None
