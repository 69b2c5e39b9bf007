"""The service's settings: from options, then from environment variables `TCPWIN_…`, then these defaults.

Opens nothing and creates nothing.
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
"""Databases, each with the driver by which it can be asked without waiting."""
SUPPORTED = " or ".join("+".join(each) for each in DRIVERS.items())


def _default_data() -> Path:
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "tcpwin"


class Settings(BaseSettings):
    """Every setting; the description is what `tcpwin serve --help` and the documentation say of it."""

    model_config = SettingsConfigDict(env_prefix="TCPWIN_", extra="ignore", frozen=True)

    host: str = Field("127.0.0.1", description="address to listen on; any but a loopback one needs a token")
    port: int = Field(8642, ge=0, le=65535, description="TCP port; 0 takes any free one")
    token: SecretStr | None = Field(None, description="secret that callers must show; at least 16 characters")
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="further names, separated by commas, by which the service may be called"
    )
    data: Path = Field(default_factory=_default_data, description="folder of files, results and the SQLite database")
    database_url: str | None = Field(
        None, description="SQLAlchemy URL such as postgresql+psycopg://…; by default SQLite in the data folder"
    )
    keep_payloads: bool = Field(False, description="keep packets whole; otherwise only headers are kept of an upload")
    retention_days: float = Field(30, ge=0, description="days after which an upload is deleted; 0 keeps it")
    max_upload_bytes: int = Field(4 << 30, gt=0, description="most bytes of one uploaded file")
    max_unpacked_bytes: int = Field(8 << 30, gt=0, description="most bytes that one upload may unpack to")
    max_snapshot_bytes: int = Field(256 << 20, gt=0, description="most bytes of one file of snapshots")
    max_files: int = Field(64, gt=0, description="most files of one capture")
    workers: int = Field(
        default_factory=lambda: os.cpu_count() or 1, gt=0, le=256, description="analyses at the same time"
    )
    executor: str | None = Field(
        None,
        description="cluster that does analyses, as dask://HOST:8786; its workers see the data folder by the same path",
    )
    job_seconds: float = Field(900, gt=0, description="most seconds that one analysis may take")
    job_memory_bytes: int = Field(4 << 30, ge=1 << 30, description="most memory that one analysis may take")
    uploads: int = Field(64, gt=0, le=1024, description="uploads that arrive at the same time; others wait")
    stall_seconds: float = Field(30, gt=0, description="seconds after which a request ends that sends nothing")
    resume_minutes: float = Field(60, gt=0, description="minutes in which a broken-off upload can be resumed")
    print_seconds: float = Field(120, gt=0, description="most seconds that a report may take to be printed")
    upload_rate: str = Field("240/minute", description="uploads that one address, login or token may begin")
    login_rate: str = Field("10/minute", description="logins, and wrong tokens, that one address may try")
    guest_rate: str = Field("120/minute", description="what one address may open by share links")
    guest_report_rate: str = Field("10/minute", description="reports that one address may ask for by share links")
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="addresses or networks, separated by commas, of proxies whose X-Forwarded-For is believed"
    )
    share_days: float = Field(30, gt=0, description="most days that a share link may live")
    session_hours: float = Field(12, gt=0, description="hours until a login ends")
    fleet: Path | None = Field(None, description="data set of `tcpwin fleet run` that the page /fleet shows")
    watch: str | None = Field(
        None, description="recorder that the page /watch follows, as http://127.0.0.1:9464 of `tcpwin watch --metrics`"
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
                raise ValueError(f"{each} is no address or network, such as 10.0.0.5 or 10.0.0.0/24") from None
        return value

    @field_validator("executor")
    @classmethod
    def _check_executor(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if _place_of(value, scheme="dask") is None:
            raise ValueError(f"{value} is no address of a scheduler such as dask://10.0.0.5:8786")
        if find_spec("distributed") is None:
            raise ValueError("a Dask cluster needs another package: pip install 'tcpwin[fleet]'")
        return value

    @field_validator("watch")
    @classmethod
    def _check_watch(cls, value: str | None) -> str | None:
        if value is not None and _place_of(value) is None:
            raise ValueError(f"{value} is no address such as http://127.0.0.1:9464")
        return value

    @field_validator("database_url")
    @classmethod
    def _check_database(cls, value: str | None) -> str | None:
        """Say what is wrong without the URL: it may hold a password."""
        if value is None:
            return None
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError

        try:
            url = make_url(value)
        except ArgumentError:
            raise ValueError(f"no URL of a database such as {URL_EXAMPLE}") from None
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
            raise ValueError(f"{self.host} is not a loopback address: set TCPWIN_TOKEN, which callers must then show")
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
        """Host and port of the recorder."""
        return _place_of(self.watch or "") or ("127.0.0.1", 0)

    @property
    def secret(self) -> str | None:
        """The token in the clear; None where none is needed."""
        return None if self.token is None else self.token.get_secret_value()

    @property
    def url(self) -> str:
        """Where the database is."""
        return self.database_url or f"sqlite+aiosqlite:///{self.data / 'tcpwin.sqlite3'}"

    @property
    def trusted_hosts(self) -> list[str]:
        """The names by which the service may be called: a page of another site must not reach it by its own."""
        if self.is_loopback:
            return [*LOOPBACK_NAMES, *self.allowed_hosts]
        anywhere = ipaddress.ip_address(self.host).is_unspecified if _is_address(self.host) else False
        # Behind a wildcard address the token keeps others out; a name is checked where the operator says which.
        if anywhere and not self.allowed_hosts:
            return ["*"]
        own = f"[{self.host}]" if ":" in self.host else self.host
        return [*LOOPBACK_NAMES, own, *self.allowed_hosts]


def _place_of(address: str, scheme: str = "http") -> tuple[str, int] | None:
    told = urlsplit(address)
    try:
        is_plain = told.scheme == scheme and told.path in ("", "/") and not told.query
        return (told.hostname, told.port) if is_plain and told.hostname and told.port else None
    except ValueError:
        return None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
