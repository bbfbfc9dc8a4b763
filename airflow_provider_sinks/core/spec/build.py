"""The short Python API: the same sink as in YAML, with keywords that an editor completes.

What names a source or a target stands with its connector (``short.py``).

>>> from airflow_provider_sinks import Sink, kafka
>>> sink = Sink(
...     name="pageviews_clean",
...     source=kafka("kafka_prod", "pageviews", schema="userid string, pageid string"),
...     where="pageid IS NOT NULL",
...     target=kafka("kafka_prod", "pageviews-clean", key=["userid"]),
... )
>>> sink.writer_mode.value
'per_partition'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Required, TypeAlias, TypedDict, Unpack

from airflow_provider_sinks.core.spec.sink import SinkSpec

Every: TypeAlias = timedelta | str


class SinkKeywords(TypedDict, total=False):
    """What ``Sink()`` takes: first what each sink must have, then what most have, then the rest."""

    name: Required[str]
    source: Required[str | Mapping[str, Any]]
    target: Required[str | Mapping[str, Any]]

    select: str | Sequence[str] | None
    where: str | None
    query: str | None
    lookups: Mapping[str, Any] | None
    every: Every | None

    dead_letter: str | Mapping[str, Any]
    progress: str | Mapping[str, Any]
    writers: str
    output_mode: str
    checkpoint: str
    transaction_timeout: Every
    transactional_id_prefix: str
    patience: Every


def Sink(**keywords: Unpack[SinkKeywords]) -> SinkSpec:  # noqa: N802  it reads as what it makes
    """Declare a sink. One that is missing or misspelt is said with all other problems.

    - ``source``: ``kafka(...)``, or ``"connection/topic"`` for raw bytes.
    - ``target``: ``kafka(...)``, ``postgres(...)``, ``iceberg(...)``, ``delta(...)``,
      ``spark_format(...)``, or ``"connection/topic"``.
    - ``select``: expressions of the output; or write a whole ``query`` from ``source``.
    - ``lookups``: tables to join with, by the names that the query gives them.
    - ``every``: how often an endless sink runs an epoch; without it the sink takes what is there and ends.

    :raises ConfigurationError: with all problems at once.
    """
    given: dict[str, Any] = {key: value for key, value in keywords.items() if value is not None}
    if isinstance(given.get("select"), str):
        given["select"] = [given["select"]]
    if "every" in given:
        given["trigger"] = {"every": given.pop("every")}
    return SinkSpec.parse(given, reads_files=True)
