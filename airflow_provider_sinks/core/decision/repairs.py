"""How to mend what no way on settles: the command, or what to do instead."""

from __future__ import annotations

from airflow_provider_sinks.core.decision.case import Case
from airflow_provider_sinks.core.decision.refusals import moved_from
from airflow_provider_sinks.core.decision.ways import Reason

REPAIRS: dict[Reason, str] = {
    Reason.TOO_MANY_PARTITIONS: (
        "kafka-topics.sh --bootstrap-server {bootstrap} --delete --topic {topic}; the sink then makes it "
        "anew with one partition. It holds up to {records:,} records: if progress is among them, the sink "
        "refuses to start without it, and the ways on are resume_from_witness and start_over."
    ),
    Reason.NOT_COMPACTED: (
        "kafka-configs.sh --bootstrap-server {bootstrap} --alter --entity-type topics --entity-name {topic} "
        "--add-config cleanup.policy=compact"
    ),
    Reason.NEWER_FORMAT: (
        "Start the sink with the release of airflow-provider-sinks that wrote this, or a later one: "
        "pip install --upgrade airflow-provider-sinks"
    ),
    Reason.NEWER_GENERATION: "Leave the sink to the newer start. To run it from here, stop that one first.",
    Reason.PROGRESS_EMPTIED_IN_PART: "If there is a copy of the progress topic, restore it first.",
    Reason.SOURCE_LOST: (
        "Make the topic again, or name the right one as source: the sink then refuses the other "
        "id and offers "
        "ways on."
    ),
}
"""How to mend what no way on settles."""


def repair(case: Case) -> str:
    """Return how to mend what no way on settles, or an empty text."""
    seen = case.seen
    if moved_from(case):
        return (
            "If the connection was changed by mistake, let it lead to the old cluster again; the sink goes "
            "on from its progress there."
        )
    command = REPAIRS.get(case.refusal.reason, "")
    return command.format(bootstrap=case.observation.bootstrap, topic=seen.name, records=seen.records)
