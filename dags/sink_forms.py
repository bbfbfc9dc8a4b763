"""Forms for whoever presses "Trigger" in Airflow: stop and start a sink, let it read again, begin it anew."""

# [START forms]
from pathlib import Path

from airflow_provider_sinks.forms import known_sinks, pause_or_resume_dag, reset_dag, rewind_dag

SINKS = known_sinks(Path(__file__).parent)  # are suggested

pause_or_resume_sink = pause_or_resume_dag(sinks=SINKS)
rewind_sink = rewind_dag(sinks=SINKS)
reset_sink = reset_dag(sinks=SINKS)
# [END forms]
