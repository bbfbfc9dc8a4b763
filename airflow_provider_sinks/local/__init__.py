"""The embedded stack: a real Kafka broker, Postgres, Spark and Airflow on free ports; extra ``[local]``."""
