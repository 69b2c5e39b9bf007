"""Link captures from one bundle, and note for their files which of them they belong to."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("captures", sa.Column("bundle_id", sa.String(32)))
    op.create_index("ix_captures_bundle_id", "captures", ["bundle_id"])
    op.add_column("files", sa.Column("part", sa.String(255), nullable=False, server_default=""))


def downgrade() -> None:
    """Drop them."""
    op.drop_column("files", "part")
    op.drop_index("ix_captures_bundle_id", "captures")
    op.drop_column("captures", "bundle_id")
