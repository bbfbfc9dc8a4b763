"""Everything that knows Postgres as a target."""
