"""The first tables: captures, their files, tags, jobs and share links; the audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _of_capture() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["capture_id"], ["captures.id"], ondelete="CASCADE")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "captures",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("failure", sa.String(2000)),
        sa.Column("origin", sa.String(4096), unique=True),
        sa.Column("created_ns", sa.BigInteger, nullable=False),
        sa.Column("expires_ns", sa.BigInteger),
        sa.Column("uploaded_bytes", sa.BigInteger, nullable=False),
        sa.Column("packets", sa.BigInteger),
        sa.Column("connections", sa.BigInteger),
        sa.Column("findings", sa.BigInteger),
        sa.Column("severity", sa.String(16)),
        sa.Column("summary", sa.String(4000)),
    )
    for column in ("status", "created_ns", "expires_ns"):
        op.create_index(f"ix_captures_{column}", "captures", [column])
    op.create_table(
        "files",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("capture_id", sa.String(32), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("label", sa.String(255), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("packets_cut", sa.BigInteger),
        sa.Column("facts", sa.JSON),
        _of_capture(),
    )
    op.create_index("files_of_a_capture", "files", ["capture_id"])
    op.create_index("files_by_content", "files", ["sha256"])
    op.create_table(
        "tags",
        sa.Column("capture_id", sa.String(32), primary_key=True),
        sa.Column("tag", sa.String(64), primary_key=True),
        _of_capture(),
    )
    op.create_index("ix_tags_tag", "tags", ["tag"])
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("capture_id", sa.String(32), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("created_ns", sa.BigInteger, nullable=False),
        sa.Column("started_ns", sa.BigInteger),
        sa.Column("finished_ns", sa.BigInteger),
        sa.Column("failure", sa.String(2000)),
        _of_capture(),
    )
    op.create_index("jobs_in_order", "jobs", ["status", "created_ns"])
    op.create_index("jobs_of_a_capture", "jobs", ["capture_id"])
    op.create_table(
        "shares",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("capture_id", sa.String(32), nullable=False),
        sa.Column("secret_sha256", sa.String(64), nullable=False, unique=True),
        sa.Column("created_ns", sa.BigInteger, nullable=False),
        sa.Column("expires_ns", sa.BigInteger, nullable=False),
        sa.Column("address_key", sa.String(64)),
        _of_capture(),
    )
    op.create_index("ix_shares_capture_id", "shares", ["capture_id"])
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("at_ns", sa.BigInteger, nullable=False),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("subject", sa.String(64)),
        sa.Column("actor", sa.String(16), nullable=False),
        sa.Column("address", sa.String(64)),
    )
    op.create_index("ix_audit_at_ns", "audit", ["at_ns"])


def downgrade() -> None:
    """Drop the tables."""
    for table in ("audit", "shares", "jobs", "tags", "files", "captures"):
        op.drop_table(table)
