"""Rules about topics: who writes where, and whether rows go round in a circle.

Topics are the same when connection and name are; that two connections lead to one broker is not known here.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from airflow_provider_sinks.checker.facts import Declared, FolderFacts
from airflow_provider_sinks.checker.finding import Finding
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.spec.kinds import SOURCE
from airflow_provider_sinks.core.spec.sink import SinkSpec

Topic = tuple[str, str]
"""Connection and name."""


class Use(enum.StrEnum):
    """What a sink does with a topic that it writes."""

    DATA = "rows"
    DEAD_LETTER = "dead letters"
    PROGRESS = "progress"


_USES = {Role.DATA: Use.DATA, Role.DEAD_LETTER: Use.DEAD_LETTER, Role.PROGRESS: Use.PROGRESS}


@dataclass(frozen=True)
class Written:
    """Find a topic that a sink writes."""

    sink: Declared
    topic: Topic
    use: Use


def shared_data(facts: FolderFacts) -> Iterator[Finding]:
    """Find two sinks that write rows to one topic: neither can tell its output from the other's."""
    remedy = "give each sink a target of its own; readers can read several topics"
    return _shared(facts, Use.DATA, (Use.DATA,), "shared-topic", remedy)


def shared_dead_letters(facts: FolderFacts) -> Iterator[Finding]:
    """Find a dead-letter topic that another sink writes too."""
    remedy = "give each sink a dead-letter topic of its own"
    return _shared(facts, Use.DEAD_LETTER, (Use.DATA, Use.DEAD_LETTER), "shared-dead-letter", remedy)


def shared_progress(facts: FolderFacts) -> Iterator[Finding]:
    """Find a progress topic into which another sink writes rows or dead letters; progress may share."""
    remedy = "leave progress out, or name a topic that holds nothing but progress"
    return _shared(facts, Use.PROGRESS, (Use.DATA, Use.DEAD_LETTER), "shared-progress", remedy)


def cycles(facts: FolderFacts) -> Iterator[Finding]:
    """Sinks whose rows come back to where they started: each row goes round for ever."""
    readers: dict[Topic, list[Declared]] = {}
    for sink in facts.sinks:
        readers.setdefault(_source(sink), []).append(sink)
    seen: set[frozenset[str]] = set()
    for sink in facts.sinks:
        circle = _circle(sink, readers)
        names = frozenset(member.spec.name for member in circle)
        if circle and names not in seen:
            seen.add(names)
            way = " -> ".join([*(_source(member)[1] for member in circle), _source(sink)[1]])
            members = ", ".join(f'"{member.spec.name}" ({member.place})' for member in circle)
            what = f"rows go round in a circle: {way}; sinks {members}"
            yield Finding(sink.place, "cycle", what, "write one of them to a topic that none of them reads")


def _circle(start: Declared, readers: Mapping[Topic, list[Declared]]) -> list[Declared]:
    """Return the shortest way on which rows come back to a sink; empty if they do not."""
    ways, reached = deque([[start]]), set()
    while ways:
        way = ways.popleft()
        for following in readers.get(_target(way[-1]), []):
            name = following.spec.name
            if name == start.spec.name:
                return way
            if name not in reached:
                reached.add(name)
                ways.append([*way, following])
    return []


def _shared(
    facts: FolderFacts, use: Use, others: tuple[Use, ...], rule: str, remedy: str
) -> Iterator[Finding]:
    """Complain, once, about each sink that uses a topic in one way which another uses in one of others.

    Of two that use it in the same way, the later one is complained about.
    """
    for written in _by_topic(facts):
        for index, one in enumerate(written):
            clashes = (
                other
                for place, other in enumerate(written)
                if other.use in others and other.sink.spec.name != one.sink.spec.name
                if other.use is not use or place < index
            )
            if one.use is use and (other := next(clashes, None)):
                yield _finding(one, other, rule, remedy)


def _by_topic(facts: FolderFacts) -> Iterable[list[Written]]:
    by_topic: dict[Topic, list[Written]] = {}
    for entry in (entry for sink in facts.sinks for entry in _writes(sink)):
        by_topic.setdefault(entry.topic, []).append(entry)
    return by_topic.values()


def _writes(sink: Declared) -> Iterator[Written]:
    connection, _ = _target(sink)
    for role, name in sink.spec.resources.items():
        yield Written(sink, (connection, name), _USES[role])


def _finding(one: Written, other: Written, rule: str, remedy: str) -> Finding:
    spec, (_, name) = one.sink.spec, one.topic
    where = (
        f'connection "{spec.target_connection}"' if spec.target_connection else f"target {spec.target_kind}"
    )
    what = (
        f'sink "{spec.name}" writes its {one.use} to {_word(spec)} "{name}" of {where}, '
        f'to which sink "{other.sink.spec.name}" ({other.sink.place}) writes its {other.use}'
    )
    return Finding(one.sink.place, rule, what, remedy)


def _word(spec: SinkSpec) -> str:
    return "topic" if spec.target_kind == SOURCE else "output"


def _source(sink: Declared) -> Topic:
    read = sink.spec.source.kafka
    return read.connection, read.topic


def _target(sink: Declared) -> Topic:
    place = sink.spec.target_connection or sink.spec.target_kind
    return place, sink.spec.resources[Role.DATA]
