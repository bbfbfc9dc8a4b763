"""From Airflow's connections to checked options, clients and ``spark-submit``."""
