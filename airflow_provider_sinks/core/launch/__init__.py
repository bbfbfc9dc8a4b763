"""One start of a driver as Airflow counts it: its files, its status, and whether it lives."""
