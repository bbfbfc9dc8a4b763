"""Spark drivers as Airflow sees them: where they are, whether they live, and their end."""
