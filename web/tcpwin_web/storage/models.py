"""The tables. Times are nanoseconds since the Unix epoch; ids are random and reveal nothing."""

import secrets
import time
from typing import Any

from sqlalchemy import JSON, BigInteger, Boolean, ForeignKey, Index, Integer, String
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from tcpwin.limits import DAMAGED

ID_BYTES = 12


def new_id() -> str:
    """Return an id that cannot be guessed: 96 random bits."""
    return secrets.token_urlsafe(ID_BYTES)


def now_ns() -> int:
    """Return the current time in the unit of the tables."""
    return time.time_ns()


class Base(DeclarativeBase):
    """Base class of the tables."""


class Capture(Base):
    """A capture: files that are analysed together.

    status: open (files may be added), queued, running, done, failed or cancelled.
    """

    __tablename__ = "captures"

    id: Mapped[str] = mapped_column(String(32), primary_key=True, default=new_id)
    name: Mapped[str] = mapped_column(String(255))
    status: Mapped[str] = mapped_column(String(16), default="open", index=True)
    failure: Mapped[str | None] = mapped_column(String(2000))
    origin: Mapped[str | None] = mapped_column(String(4096), unique=True)
    """Path, size and time of a capture named when the service started."""
    bundle_id: Mapped[str | None] = mapped_column(String(32), index=True)
    """The same for captures from one bundle, such as those of both ends; None for a single capture."""
    created_ns: Mapped[int] = mapped_column(BigInteger, default=now_ns, index=True)
    expires_ns: Mapped[int | None] = mapped_column(BigInteger, index=True)
    uploaded_bytes: Mapped[int] = mapped_column(BigInteger, default=0)
    packets: Mapped[int | None] = mapped_column(BigInteger)
    connections: Mapped[int | None] = mapped_column(BigInteger)
    findings: Mapped[int | None] = mapped_column(BigInteger)
    severity: Mapped[str | None] = mapped_column(String(16))
    summary: Mapped[str | None] = mapped_column(String(4000))
    problems: Mapped[int | None] = mapped_column(BigInteger)
    """Number of connections with a problem."""
    verdict: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    """Verdict of the worst connection."""
    host_pairs: Mapped[int | None] = mapped_column(BigInteger)
    """Number of host pairs by port and limit, including those beyond the stored rows."""
    results_version: Mapped[int | None] = mapped_column(Integer)
    """Format version of the results."""
    window_scales: Mapped[dict[str, int] | None] = mapped_column(JSON)
    """Given by hand: window scale shifts by host address."""
    selection: Mapped[dict[str, str | None] | None] = mapped_column(JSON)
    """The analysed packets: filter, start and end as in `tcpwin.sources.Selection`; None: all."""

    files: Mapped[list["File"]] = relationship(cascade="all, delete-orphan", order_by="File.position")
    tags: Mapped[list["Tag"]] = relationship(cascade="all, delete-orphan", order_by="Tag.tag", lazy="selectin")
    jobs: Mapped[list["Job"]] = relationship(cascade="all, delete-orphan")
    shares: Mapped[list["Share"]] = relationship(cascade="all, delete-orphan")
    notes: Mapped[list["Note"]] = relationship(cascade="all, delete-orphan")

    @property
    def has_results(self) -> bool:
        """Whether there are results, of this analysis or of an earlier one that has not been replaced yet."""
        return self.results_version is not None

    @property
    def is_damaged(self) -> bool:
        """Whether the file is damaged and only the part before the damage was read, according to its summary."""
        return DAMAGED in (self.summary or "")


class File(Base):
    """A file of a capture. Its bytes are stored under their SHA-256 in the data folder."""

    __tablename__ = "files"
    __table_args__ = (Index("files_of_a_capture", "capture_id"), Index("files_by_content", "sha256"))

    id: Mapped[str] = mapped_column(String(32), primary_key=True, default=new_id)
    capture_id: Mapped[str] = mapped_column(ForeignKey("captures.id", ondelete="CASCADE"))
    position: Mapped[int] = mapped_column(Integer)
    name: Mapped[str] = mapped_column(String(255))
    label: Mapped[str] = mapped_column(String(255), default="")
    """The host that the bundle names for the file."""
    kind: Mapped[str] = mapped_column(String(16))
    """capture or snapshot."""
    part: Mapped[str] = mapped_column(String(255), default="")
    """Name within a bundle of several captures; the files of a ring buffer share it."""
    sha256: Mapped[str] = mapped_column(String(64))
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    packets_cut: Mapped[int | None] = mapped_column(BigInteger)
    facts: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    """Size and time of the uploaded file."""
    uploader: Mapped[str | None] = mapped_column(String(64), index=True)
    """Id of the API token that sent the file and whose share of the disk it takes; None for the owner."""
    notes: Mapped[list[str] | None] = mapped_column(JSON)
    """Remarks on files missing from the bundle; stored with one file of each of its captures."""


class Tag(Base):
    """A tag on a capture."""

    __tablename__ = "tags"

    capture_id: Mapped[str] = mapped_column(ForeignKey("captures.id", ondelete="CASCADE"), primary_key=True)
    tag: Mapped[str] = mapped_column(String(64), primary_key=True, index=True)


class Job(Base):
    """An analysis, queued or done. status: queued, running, done, failed or cancelled."""

    __tablename__ = "jobs"
    __table_args__ = (Index("jobs_in_order", "status", "created_ns"), Index("jobs_of_a_capture", "capture_id"))

    id: Mapped[str] = mapped_column(String(32), primary_key=True, default=new_id)
    capture_id: Mapped[str] = mapped_column(ForeignKey("captures.id", ondelete="CASCADE"))
    status: Mapped[str] = mapped_column(String(16), default="queued")
    attempts: Mapped[int] = mapped_column(Integer, default=0)
    owner: Mapped[str] = mapped_column(String(128), default="")
    """Fairness key: jobs of one caller wait for each other, not for those of others."""
    created_ns: Mapped[int] = mapped_column(BigInteger, default=now_ns)
    started_ns: Mapped[int | None] = mapped_column(BigInteger)
    finished_ns: Mapped[int | None] = mapped_column(BigInteger)
    failure: Mapped[str | None] = mapped_column(String(2000))


class Share(Base):
    """A link by which anyone who has it may read one capture's results. Its secret is stored as a hash."""

    __tablename__ = "shares"

    id: Mapped[str] = mapped_column(String(32), primary_key=True, default=new_id)
    capture_id: Mapped[str] = mapped_column(ForeignKey("captures.id", ondelete="CASCADE"), index=True)
    secret_sha256: Mapped[str] = mapped_column(String(64), unique=True)
    created_ns: Mapped[int] = mapped_column(BigInteger, default=now_ns)
    expires_ns: Mapped[int] = mapped_column(BigInteger)
    is_anonymised: Mapped[bool] = mapped_column(Boolean)
    """Whether addresses are mapped. The mapping's key is in no database: `tcpwin_web.sharing.keys`."""


class Note(Base):
    """A person's note on a capture, or on something in it."""

    __tablename__ = "notes"

    id: Mapped[str] = mapped_column(String(32), primary_key=True, default=new_id)
    capture_id: Mapped[str] = mapped_column(ForeignKey("captures.id", ondelete="CASCADE"), index=True)
    created_ns: Mapped[int] = mapped_column(BigInteger, default=now_ns)
    connection: Mapped[int | None] = mapped_column(BigInteger)
    frame: Mapped[int | None] = mapped_column(BigInteger)
    rule: Mapped[str | None] = mapped_column(String(16))
    """Code of the finding's rule."""
    author: Mapped[str] = mapped_column(String(64), default="")
    """The author's name, as entered."""
    text: Mapped[str] = mapped_column(String(4000))


class HostPair(Base):
    """Connections of a capture between two hosts with the same limit, for searches over all captures."""

    __tablename__ = "host_pairs"
    __table_args__ = (
        Index("host_pairs_by_limit", "limited_by", "start_ns"),
        Index("host_pairs_by_port", "port", "start_ns"),
    )

    # SQLite numbers only rows of type INTEGER.
    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True)
    capture_id: Mapped[str] = mapped_column(ForeignKey("captures.id", ondelete="CASCADE"), index=True)
    client: Mapped[str] = mapped_column(String(64), index=True)
    server: Mapped[str] = mapped_column(String(64), index=True)
    port: Mapped[int] = mapped_column(Integer)
    """Port of the server."""
    limited_by: Mapped[str] = mapped_column(String(32))
    connections: Mapped[int] = mapped_column(BigInteger)
    problems: Mapped[int] = mapped_column(BigInteger)
    """Number of connections with a problem."""
    lost_ns: Mapped[int] = mapped_column(BigInteger)
    duration_ns: Mapped[int] = mapped_column(BigInteger)
    """Total over all connections, like `lost_ns` and `data_bytes`."""
    data_bytes: Mapped[int] = mapped_column(BigInteger)
    rate_bps: Mapped[int | None] = mapped_column(BigInteger)
    """Rate of the connection with the most data."""
    rtt_ns: Mapped[int | None] = mapped_column(BigInteger)
    """The path's shortest round trip."""
    start_ns: Mapped[int] = mapped_column(BigInteger, index=True)
    worst: Mapped[int] = mapped_column(BigInteger)
    """Number of the connection that lost most time."""


class ApiToken(Base):
    """A secret that grants access within its scope. It is stored as a hash."""

    __tablename__ = "tokens"

    id: Mapped[str] = mapped_column(String(32), primary_key=True, default=new_id)
    name: Mapped[str] = mapped_column(String(64))
    secret_sha256: Mapped[str] = mapped_column(String(64), unique=True)
    scope: Mapped[str] = mapped_column(String(16))
    """read, upload or admin."""
    created_ns: Mapped[int] = mapped_column(BigInteger, default=now_ns)
    expires_ns: Mapped[int] = mapped_column(BigInteger)
    revoked_ns: Mapped[int | None] = mapped_column(BigInteger)


class Audit(Base):
    """Audit log. Holds ids only: nothing of a deleted capture remains here."""

    __tablename__ = "audit"

    # SQLite numbers only rows of type INTEGER.
    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True)
    at_ns: Mapped[int] = mapped_column(BigInteger, default=now_ns, index=True)
    action: Mapped[str] = mapped_column(String(64))
    subject: Mapped[str | None] = mapped_column(String(64))
    actor: Mapped[str] = mapped_column(String(16))
    """token, session, share, local (no token is set), service or nobody."""
    address: Mapped[str | None] = mapped_column(String(64))
    login: Mapped[str | None] = mapped_column(String(16))
    """The same for all actions of one login."""
    link: Mapped[str | None] = mapped_column(String(32))
    """Id of the share link that was created, revoked, or opened."""
    token: Mapped[str | None] = mapped_column(String(32))
    """Id of the API token that the caller showed or logged in with; None for the service's own."""
