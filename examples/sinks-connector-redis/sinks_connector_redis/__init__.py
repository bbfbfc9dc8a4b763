"""A target of airflow-provider-sinks: Redis streams, with rows and progress written by one script."""
