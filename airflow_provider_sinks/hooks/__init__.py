"""Airflow connections as checked options, the provider's ``spark-submit``, and Airflow's memory of a sink."""
