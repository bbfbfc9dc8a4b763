"""What Airflow's own metadata holds of a sink: its memory, its DAGs, its homes."""
