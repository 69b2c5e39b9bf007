"""Let searches by limit or port walk an index by time instead of sorting all rows."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

COLUMNS = {"limited_by": "host_pairs_by_limit", "port": "host_pairs_by_port"}


def upgrade() -> None:
    """Add the times to the indexes."""
    for column, name in COLUMNS.items():
        op.drop_index(f"ix_host_pairs_{column}", "host_pairs")
        op.create_index(name, "host_pairs", [column, "start_ns"])


def downgrade() -> None:
    """Remove the times from the indexes."""
    for column, name in COLUMNS.items():
        op.drop_index(name, "host_pairs")
        op.create_index(f"ix_host_pairs_{column}", "host_pairs", [column])
