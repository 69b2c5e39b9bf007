"""Add notes on captures."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "notes",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("capture_id", sa.String(32), sa.ForeignKey("captures.id", ondelete="CASCADE"), nullable=False),
        sa.Column("created_ns", sa.BigInteger, nullable=False),
        sa.Column("connection", sa.BigInteger),
        sa.Column("frame", sa.BigInteger),
        sa.Column("rule", sa.String(16)),
        sa.Column("author", sa.String(64), nullable=False),
        sa.Column("text", sa.String(4000), nullable=False),
    )
    op.create_index("ix_notes_capture_id", "notes", ["capture_id"])


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("notes")
