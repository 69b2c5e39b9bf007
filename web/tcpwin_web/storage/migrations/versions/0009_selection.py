"""Store which packets of a capture are analysed."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("captures", sa.Column("selection", sa.JSON))


def downgrade() -> None:
    """Drop the column: all packets are analysed."""
    op.drop_column("captures", "selection")
