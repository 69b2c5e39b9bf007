"""Add the hosts of each capture with their costs, for searches over all captures."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table; the service fills it when it analyses captures of earlier versions again."""
    op.create_table(
        "host_pairs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("capture_id", sa.String(32), sa.ForeignKey("captures.id", ondelete="CASCADE"), nullable=False),
        sa.Column("client", sa.String(64), nullable=False),
        sa.Column("server", sa.String(64), nullable=False),
        sa.Column("port", sa.Integer, nullable=False),
        sa.Column("limited_by", sa.String(32), nullable=False),
        sa.Column("connections", sa.BigInteger, nullable=False),
        sa.Column("problems", sa.BigInteger, nullable=False),
        sa.Column("lost_ns", sa.BigInteger, nullable=False),
        sa.Column("duration_ns", sa.BigInteger, nullable=False),
        sa.Column("data_bytes", sa.BigInteger, nullable=False),
        sa.Column("rate_bps", sa.BigInteger),
        sa.Column("rtt_ns", sa.BigInteger),
        sa.Column("start_ns", sa.BigInteger, nullable=False),
        sa.Column("worst", sa.BigInteger, nullable=False),
    )
    for column in ("capture_id", "client", "server", "port", "limited_by", "start_ns"):
        op.create_index(f"ix_host_pairs_{column}", "host_pairs", [column])
    op.add_column("captures", sa.Column("host_pairs", sa.BigInteger))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("captures", "host_pairs")
    op.drop_table("host_pairs")
