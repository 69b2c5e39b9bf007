"""The service's settings: from options, environment variables `TCPWIN_…`, and defaults, in this order.

Opens and creates nothing.
"""

import ipaddress
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

LOOPBACK_NAMES = ("127.0.0.1", "[::1]", "localhost")
MIN_TOKEN_CHARACTERS = 16
URL_EXAMPLE = "postgresql+psycopg://…"
DRIVERS = {"sqlite": "aiosqlite", "postgresql": "psycopg"}
"""Supported databases with their asynchronous drivers."""
SUPPORTED = " or ".join("+".join(each) for each in DRIVERS.items())


def _default_data() -> Path:
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "tcpwin"


class Settings(BaseSettings):
    """All settings; `tcpwin serve --help` and the documentation show the descriptions."""

    model_config = SettingsConfigDict(env_prefix="TCPWIN_", extra="ignore", frozen=True)

    host: str = Field("127.0.0.1", description="address to listen on; any but a loopback address needs a token")
    port: int = Field(8642, ge=0, le=65535, description="TCP port; 0 takes any free one")
    token: SecretStr | None = Field(None, description="secret that callers must present; at least 16 characters")
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="further host names of the service, separated by commas"
    )
    data: Path = Field(default_factory=_default_data, description="folder of files, results and the SQLite database")
    database_url: str | None = Field(
        None, description="SQLAlchemy URL such as postgresql+psycopg://…; by default SQLite in the data folder"
    )
    keep_payloads: bool = Field(False, description="keep packets whole; by default only their headers are kept")
    retention_days: float = Field(30, ge=0, description="days after which an upload is deleted; 0 keeps it")
    retention_bytes: int = Field(
        0, ge=0, description="size of all stored files above which the oldest are deleted, bytes; 0 for no limit"
    )
    max_upload_bytes: int = Field(4 << 30, gt=0, description="maximum size of an uploaded file, bytes")
    max_unpacked_bytes: int = Field(8 << 30, gt=0, description="maximum unpacked size of an upload, bytes")
    max_snapshot_bytes: int = Field(256 << 20, gt=0, description="maximum size of a snapshot file, bytes")
    max_files: int = Field(64, gt=0, description="maximum number of files per capture")
    workers: int = Field(
        default_factory=lambda: os.cpu_count() or 1, gt=0, le=256, description="number of analyses at the same time"
    )
    executor: str | None = Field(
        None,
        description="cluster for analyses, as dask://HOST:8786; its workers need the data folder under the same path",
    )
    job_seconds: float = Field(900, gt=0, description="time limit of an analysis, seconds")
    job_memory_bytes: int = Field(4 << 30, ge=1 << 30, description="memory limit of an analysis, bytes")
    uploads: int = Field(64, gt=0, le=1024, description="number of uploads at the same time; others wait")
    stall_seconds: float = Field(30, gt=0, description="seconds without data after which a request ends")
    resume_minutes: float = Field(60, gt=0, description="minutes during which an interrupted upload can be resumed")
    print_seconds: float = Field(120, gt=0, description="time limit for printing a report, seconds")
    upload_rate: str = Field("240/minute", description="uploads that one address, login or token may begin")
    login_rate: str = Field("10/minute", description="logins, and wrong tokens, that one address may try")
    guest_rate: str = Field("120/minute", description="share link requests that one address may make")
    guest_report_rate: str = Field("10/minute", description="reports that one address may request through share links")
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="trusted proxies (addresses or networks, separated by commas) whose X-Forwarded-For is used"
    )
    share_days: float = Field(30, gt=0, description="longest lifetime of a share link, days")
    session_hours: float = Field(12, gt=0, description="lifetime of a login, hours")
    fleet: Path | None = Field(None, description="data set of `tcpwin fleet run` to show on the page /fleet")
    watch: str | None = Field(
        None, description="recorder for the page /watch, as http://127.0.0.1:9464 of `tcpwin watch --metrics`"
    )
    log_json: bool = Field(False, description="write the log as one JSON object a line")

    @field_validator("allowed_hosts", "trusted_proxies", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(name.strip() for name in value.split(",") if name.strip()) if isinstance(value, str) else value

    @field_validator("upload_rate", "login_rate", "guest_rate", "guest_report_rate")
    @classmethod
    def _check_rate(cls, value: str) -> str:
        from limits import parse

        parse(value)
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _check_proxies(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            try:
                ipaddress.ip_network(each)
            except ValueError:
                raise ValueError(f"{each} is not an address or network such as 10.0.0.5 or 10.0.0.0/24") from None
        return value

    @field_validator("executor")
    @classmethod
    def _check_executor(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if _place_of(value, scheme="dask") is None:
            raise ValueError(f"{value} is not a scheduler's address such as dask://10.0.0.5:8786")
        if find_spec("distributed") is None:
            raise ValueError("a Dask cluster needs another package: pip install 'tcpwin[fleet]'")
        return value

    @field_validator("watch")
    @classmethod
    def _check_watch(cls, value: str | None) -> str | None:
        if value is not None and _place_of(value) is None:
            raise ValueError(f"{value} is not an address such as http://127.0.0.1:9464")
        return value

    @field_validator("database_url")
    @classmethod
    def _check_database(cls, value: str | None) -> str | None:
        """Report errors without the URL, which may contain a password."""
        if value is None:
            return None
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError

        try:
            url = make_url(value)
        except ArgumentError:
            raise ValueError(f"not a database URL such as {URL_EXAMPLE}") from None
        kind, _, driver = url.drivername.partition("+")
        if kind not in DRIVERS or driver not in ("", DRIVERS[kind]):
            raise ValueError(f"{url.drivername} is not supported: {SUPPORTED} is")
        if kind == "postgresql" and find_spec("psycopg") is None:
            raise ValueError("PostgreSQL needs another package: pip install 'tcpwin-web[postgres]'")
        return url.set(drivername=f"{kind}+{DRIVERS[kind]}").render_as_string(hide_password=False)

    @model_validator(mode="after")
    def _check_token(self) -> Self:
        if self.token is not None and len(self.token.get_secret_value().strip()) < MIN_TOKEN_CHARACTERS:
            raise ValueError(f"the token must have at least {MIN_TOKEN_CHARACTERS} characters")
        if self.token is None and not self.is_loopback:
            raise ValueError(
                f"{self.host} is not a loopback address: set TCPWIN_TOKEN, which callers must then present"
            )
        return self

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def watch_place(self) -> tuple[str, int]:
        """The recorder's host and port."""
        return _place_of(self.watch or "") or ("127.0.0.1", 0)

    @property
    def secret(self) -> str | None:
        """The token in clear text, or None if it is not set."""
        return None if self.token is None else self.token.get_secret_value()

    @property
    def url(self) -> str:
        """The database's URL."""
        return self.database_url or f"sqlite+aiosqlite:///{self.data / 'tcpwin.sqlite3'}"

    @property
    def trusted_hosts(self) -> list[str]:
        """Host names of the service: another site's page must not reach it under the site's own name."""
        if self.is_loopback:
            return [*LOOPBACK_NAMES, *self.allowed_hosts]
        anywhere = ipaddress.ip_address(self.host).is_unspecified if _is_address(self.host) else False
        # With a wildcard address the token keeps others out; names are checked only if the operator lists some.
        if anywhere and not self.allowed_hosts:
            return ["*"]
        own = f"[{self.host}]" if ":" in self.host else self.host
        return [*LOOPBACK_NAMES, own, *self.allowed_hosts]


def _place_of(address: str, scheme: str = "http") -> tuple[str, int] | None:
    parts = urlsplit(address)
    try:
        is_plain = parts.scheme == scheme and parts.path in ("", "/") and not parts.query
        return (parts.hostname, parts.port) if is_plain and parts.hostname and parts.port else None
    except ValueError:
        return None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
