"""A target of airflow-provider-sinks: rows in tables of a SQLite file, progress in the same transaction."""
