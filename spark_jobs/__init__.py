"""What spark-submit runs. In the wheel this folder is the package ``airflow_provider_sinks.spark_jobs``."""
