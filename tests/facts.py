"""Facts about one sink with defaults, so that a test names only what it is about.

By default sink "orders" has written 500 rows in 7 epochs, and every topic is as it was announced.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from airflow_provider_sinks.connectors.kafka.creation import CreateTopic, progress_topic
from airflow_provider_sinks.connectors.kafka.topic_facts import TopicFacts, as_progress_topic, grant
from airflow_provider_sinks.core.decision.facts import (
    Existence,
    Observation,
    ResourceFacts,
    Role,
)
from airflow_provider_sinks.core.decision.reasons.reason import Reason
from airflow_provider_sinks.core.decision.start_request import StartRequest
from airflow_provider_sinks.core.progress.history import NO_HISTORY, History
from airflow_provider_sinks.core.progress.identity import Identities, Identity
from airflow_provider_sinks.core.progress.record import DRIVER, ProgressRecord
from airflow_provider_sinks.core.progress.witness import Witness

SOURCE = Identity("cluster-a", "orders-in", "id-source", 2)
DATA = Identity("cluster-a", "orders-out", "id-data", 2)
PROGRESS = Identity("cluster-a", "_sinks-progress-orders", "id-progress", 1)
DEAD_LETTER = Identity("cluster-a", "orders-dlq", "id-dead", 1)
IDENTITIES = Identities(SOURCE, DATA, PROGRESS, DEAD_LETTER)
BOOTSTRAP = "broker:9092"
AT = "2026-11-20T22:14:00Z"


def record(**changes: Any) -> ProgressRecord:
    """Return a record of epoch 7, which ended at offset 50 of both source partitions."""
    fields: dict[str, Any] = {
        "generation": 1,
        "owner": "us",
        "run": "run-1",
        "epoch": 7,
        "from_": {0: 40, 1: 40},
        "to": {0: 50, 1: 50},
        "identities": IDENTITIES,
        "checkpoint": "/checkpoints/1",
        "batch": 6,
        "at": AT,
    }
    return ProgressRecord(**{**fields, **changes})


def history(rows_total: int = 500, dead_total: int = 0, flaws: Any = (), **changes: Any) -> History:
    """Return the history of a sink with one writer that wrote everything."""
    driver = record(**{"writers": (DRIVER, "all"), **changes})
    writer = record(**{"rows_total": rows_total, "dead_total": dead_total, **changes})
    return History({DRIVER: driver, "all": writer}, flaws=flaws)


def present(identity: Identity, **changes: Any) -> ResourceFacts:
    """Return the facts of a topic that is there, with 100 records in each partition, all committed."""
    fields: dict[str, Any] = {
        "name": identity.name,
        "existence": Existence.PRESENT,
        "system": identity.system,
        "id": identity.id,
        "partitions": identity.partitions,
        "low": dict.fromkeys(range(identity.partitions), 0),
        "high": dict.fromkeys(range(identity.partitions), 100),
    }
    whole = {**fields, **changes}
    return ResourceFacts(**{"stable": whole["high"], **whole})


def missing(identity: Identity) -> ResourceFacts:
    """Return the facts of a topic that is not there."""
    return ResourceFacts(identity.name, Existence.MISSING, identity.system)


def hidden(identity: Identity) -> ResourceFacts:
    """Return the facts of a topic that an ACL hides."""
    reason = "TOPIC_AUTHORIZATION_FAILED"
    how = grant(identity.name, "Describe", BOOTSTRAP)
    return ResourceFacts(identity.name, Existence.UNKNOWN, "cluster-a", reason=reason, grant=how)


def progress_as(**changes: Any) -> ResourceFacts:
    """Return the facts of a progress topic that is made in another way."""
    topic = TopicFacts(**{**vars(present(PROGRESS)), "cleanup_policy": "compact"})
    return as_progress_topic(replace(topic, **changes), "orders", BOOTSTRAP)


def observation(**changes: Any) -> Observation:
    """Return an observation in which everything is as it was announced."""
    fields: dict[str, Any] = {
        "source": present(SOURCE),
        "data": present(DATA),
        "progress": present(PROGRESS),
        "dead_letter": None,
        "history": history(),
        "at": "2026-11-20T23:00:00Z",
        **changes,
    }
    return Observation(**fields)


def unseen(**changes: Any) -> Observation:
    """Return what a new sink finds: a source, nothing else."""
    nothing: dict[str, Any] = {"data": missing(DATA), "progress": missing(PROGRESS), "history": NO_HISTORY}
    return observation(**{**nothing, **changes})


def request(**changes: Any) -> StartRequest:
    """Return what sink "orders" asks for."""
    fields: dict[str, Any] = {
        "sink": "orders",
        "owner": "us",
        "source": SOURCE.name,
        "data": data_topic(),
        "progress": progress_topic(PROGRESS.name),
    }
    return StartRequest(**{**fields, **changes})


def data_topic(**changes: Any) -> CreateTopic:
    """Return the data topic that a spec asks for."""
    return CreateTopic(**{"role": Role.DATA, "name": DATA.name, **changes})


def dead_letter_topic() -> CreateTopic:
    """Return the dead-letter topic that a spec asks for."""
    return CreateTopic(Role.DEAD_LETTER, DEAD_LETTER.name, 1)


def witness(**changes: Any) -> Witness:
    """Return a witness that saw all 7 epochs."""
    fields: dict[str, Any] = {
        "generation": 1,
        "epoch": 7,
        "rows": 500,
        "offsets": {0: 50, 1: 50},
        "identities": IDENTITIES,
        "owner": "us",
        "launch": 3,
        "at": AT,
    }
    return Witness(**{**fields, **changes})


def every_reason() -> Iterator[Reason]:
    """Return each reason of the catalogue, whatever else a test has loaded."""
    importlib.import_module("airflow_provider_sinks.core.decision.decide")
    for subject in Reason.__subclasses__():
        yield from subject
