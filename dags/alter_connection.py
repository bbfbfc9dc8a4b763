"""A form that alters a connection under running sinks."""

# [START alter_form]
from airflow_provider_sinks.forms import alter_connection_dag

alter_connection = alter_connection_dag(connections=["kafka_prod", "pg_prod"])
# [END alter_form]
