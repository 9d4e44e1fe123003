"""How Alembic reaches the database: always over the connection that the program hands it."""

from alembic import context

from sendonce.adapters.stores.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
