"""Add API tokens with a name, a scope and an expiry, and log which one was used."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table and the column."""
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("secret_sha256", sa.String(64), nullable=False, unique=True),
        sa.Column("scope", sa.String(16), nullable=False),
        sa.Column("created_ns", sa.BigInteger, nullable=False),
        sa.Column("expires_ns", sa.BigInteger, nullable=False),
        sa.Column("revoked_ns", sa.BigInteger),
    )
    op.add_column("audit", sa.Column("token", sa.String(32)))


def downgrade() -> None:
    """Drop them: only the service's own token grants access then."""
    op.drop_column("audit", "token")
    op.drop_table("tokens")
