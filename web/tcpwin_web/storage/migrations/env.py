"""Run migrations on the connection that the service hands over."""

from alembic import context

from tcpwin_web.storage.models import Base

context.configure(connection=context.config.attributes["connection"], target_metadata=Base.metadata)
with context.begin_transaction():
    context.run_migrations()
