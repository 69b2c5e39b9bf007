"""Add remarks on files missing from a file's bundle."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("files", sa.Column("notes", sa.JSON))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("files", "notes")
