"""``airflow sinks ...``: what a person or a script asks of sinks, and does to them."""
