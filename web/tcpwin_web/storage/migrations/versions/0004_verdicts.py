"""Store the verdict on a capture's worst connection, and the version of its results."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("captures", sa.Column("problems", sa.BigInteger))
    op.add_column("captures", sa.Column("verdict", sa.JSON))
    op.add_column("captures", sa.Column("results_version", sa.Integer))


def downgrade() -> None:
    """Drop them."""
    for column in ("results_version", "verdict", "problems"):
        op.drop_column("captures", column)
