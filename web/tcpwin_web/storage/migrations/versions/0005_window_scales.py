"""Store window scales given by hand."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("captures", sa.Column("window_scales", sa.JSON))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("captures", "window_scales")
