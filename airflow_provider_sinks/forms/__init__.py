"""DAGs that are forms, for whoever presses *Trigger* in Airflow's UI. Each function returns one.

    from airflow_provider_sinks.forms import alter_connection_dag

    alter = alter_connection_dag(connections=["kafka_prod"], users=["ann"])

Nothing here connects to anything: the same arguments give the same DAG, byte for byte. All of them act with
the rights of their connections, not with those of the person who fills them in: ``docs/roles.md`` says who
may what. Their names end with ``dag``: Airflow passes over a file in which that word does not occur.
"""

from airflow_provider_sinks.forms.alter_connection import alter_connection_dag
from airflow_provider_sinks.forms.known_sinks import known_sinks
from airflow_provider_sinks.forms.people import ACCESS_CONTROL
from airflow_provider_sinks.forms.replay_dead_letters import replay_dead_letters_dag
from airflow_provider_sinks.forms.run_sink_once import run_sink_once_dag
from airflow_provider_sinks.forms.sink_life import pause_or_resume_dag, reset_dag, rewind_dag

__all__ = [
    "ACCESS_CONTROL",
    "alter_connection_dag",
    "known_sinks",
    "pause_or_resume_dag",
    "replay_dead_letters_dag",
    "reset_dag",
    "rewind_dag",
    "run_sink_once_dag",
]
