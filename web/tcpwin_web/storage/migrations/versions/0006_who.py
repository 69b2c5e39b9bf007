"""Store whose turn a job takes, and logins and links in the audit log; move share link keys out of the database."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns. Existing links map addresses by another key from now on."""
    op.add_column("jobs", sa.Column("owner", sa.String(128), nullable=False, server_default=""))
    op.add_column("audit", sa.Column("login", sa.String(16)))
    op.add_column("audit", sa.Column("link", sa.String(32)))
    op.add_column("shares", sa.Column("is_anonymised", sa.Boolean, nullable=False, server_default=sa.true()))
    op.execute("UPDATE shares SET is_anonymised = (address_key IS NOT NULL)")
    op.drop_column("shares", "address_key")


def downgrade() -> None:
    """Drop the columns, and links that mapped addresses: their keys cannot be restored."""
    op.execute("DELETE FROM shares WHERE is_anonymised")
    op.add_column("shares", sa.Column("address_key", sa.String(64)))
    op.drop_column("shares", "is_anonymised")
    op.drop_column("audit", "link")
    op.drop_column("audit", "login")
    op.drop_column("jobs", "owner")
