"""A form for whoever presses "Trigger" in Airflow: replay what a sink has set aside."""

# [START replay]
from pathlib import Path

from airflow_provider_sinks.forms import known_sinks, replay_dead_letters_dag

replay_dead_letters = replay_dead_letters_dag(sinks=known_sinks(Path(__file__).parent))
# [END replay]
