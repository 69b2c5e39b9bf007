"""Record which API token sent a file: each has a share of the disk."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("files", sa.Column("uploader", sa.String(64)))
    op.create_index("ix_files_uploader", "files", ["uploader"])


def downgrade() -> None:
    """Remove it again."""
    op.drop_index("ix_files_uploader", "files")
    op.drop_column("files", "uploader")
