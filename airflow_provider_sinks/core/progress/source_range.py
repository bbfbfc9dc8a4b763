"""Offsets of a source topic: where a spec says that a sink begins, and whether the topic has that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from airflow_provider_sinks.core.decision.facts import ResourceFacts
from airflow_provider_sinks.core.errors import ConfigurationError, Problem


def start_positions(start: str | Mapping[int, int], source: ResourceFacts) -> dict[int, int]:
    """Return an offset for every source partition; ``earliest`` and ``latest`` are resolved here.

    ``latest`` is where a reader of committed records ends: Spark is one, and takes a start behind its own end
    for a loss of records. What an open transaction holds is read once it is committed.

    :param start: as the spec has it; partitions that it does not name begin at their first record.
    :raises ConfigurationError: it names what the source does not have.
    """
    if start == "latest":
        return dict(source.stable)
    named = start if isinstance(start, Mapping) else {}
    demand_in_source(named, source)
    return {partition: named.get(partition, low) for partition, low in source.low.items()}


def demand_in_source(named: Mapping[int, int], source: ResourceFacts) -> None:
    """Refuse a start that the user names and the source does not have: Spark would fail, or never begin."""
    problems = list(source_problems(named, source, "source.kafka.start"))
    if problems:
        raise ConfigurationError(f'the start does not fit source topic "{source.name}"', problems)


def source_problems(named: Mapping[int, int], source: ResourceFacts, where: str) -> Iterator[Problem]:
    """Return what is wrong with offsets of a source topic.

    :param where: the option that holds them.
    """
    for partition, at in named.items():
        low, high = source.low.get(partition), source.high.get(partition, 0)
        if low is None:
            what = f"the topic has no partition {partition}, only {source.partitions}"
        elif low <= at <= high:
            continue
        else:
            what = f"offset {at} is not in [{low}, {high}]"
        yield Problem(f"{where}.{partition}", what)
