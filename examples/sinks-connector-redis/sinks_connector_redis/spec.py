"""A sink whose target is a Redis stream: its part of the spec, and the rules over it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, StrictStr

from airflow_provider_sinks.connectors.plain import PlainCreation
from airflow_provider_sinks.core.decision.facts import Creation, Role
from airflow_provider_sinks.core.errors import JobFailedError, Problem
from airflow_provider_sinks.core.redefinition.bearing import Bearing
from airflow_provider_sinks.core.spec.fields import within
from airflow_provider_sinks.core.spec.parts import ConnectedTarget, DeadLetterPart, Target
from airflow_provider_sinks.core.spec.problems import UnfitError
from airflow_provider_sinks.core.spec.rules import Rule, needs
from airflow_provider_sinks.core.spec.sink import SinkSpec

PROGRESS = "_sinks_progress"
LENGTH_MAX = 10_000_000_000


def _key(value: str) -> str:
    if not value or not value.isprintable() or " " in value or len(value.encode()) > 512:
        raise UnfitError(
            f"{value[:60]!r} is no key", "1 to 512 bytes without spaces, such as orders or app:orders"
        )
    return value


Key = Annotated[StrictStr, AfterValidator(_key)]


class RedisTarget(ConnectedTarget):
    """A stream to add entries to."""

    stream: Key
    max_length: (
        Annotated[int, Field(strict=True), within(1, LENGTH_MAX, "leave it out to keep every entry")] | None
    ) = Field(default=None, description="about so many entries are kept, the newest; none: all of them")
    progress: Key = Field(default=PROGRESS, description="the key of the progress, which sinks may share")


class RedisChoice(Target):
    """Where rows go."""

    redis: RedisTarget


class RedisDeadLetter(DeadLetterPart):
    """The stream for what does not parse."""

    stream: Key


class RedisSink(SinkSpec):
    """A sink into a Redis stream."""

    right_target: ClassVar[Any] = {"redis": {"connection": "r", "stream": "a"}}
    dead_letter_example: ClassVar[str] = "{stream: orders-dead}"
    progress_option: ClassVar[str] = "target.redis.progress"
    bearings: ClassVar[Mapping[str, Bearing]] = {
        "target.redis.connection": Bearing.PLACE,
        "target.redis.key": Bearing.KEY,
        "target.redis.stream": Bearing.OUTPUT,
        "target.redis.max_length": Bearing.RUN,
        "target.redis.progress": Bearing.PROGRESS,
        "dead_letter.stream": Bearing.LETTERS,
    }

    target: RedisChoice
    dead_letter: RedisDeadLetter | None = None
    progress: None = None

    @property
    def target_rules(self) -> tuple[Rule, ...]:
        """The rules between the options of the target and the rest of the sink."""
        return ((needs("target"), _no_key), (needs("target", "dead_letter"), _different))

    @property
    def progress_is_shared(self) -> bool:
        """Sinks may name the same key."""
        return True

    @property
    def resources(self) -> dict[Role, str]:
        """The keys of the sink."""
        target = self.target.redis
        named = {Role.DATA: target.stream, Role.PROGRESS: target.progress}
        return named | ({Role.DEAD_LETTER: self.dead_letter.stream} if self.dead_letter else {})

    def creations(self) -> dict[Role, Creation]:
        """Return how each of them is made."""
        return {role: PlainCreation(role, name) for role, name in self.resources.items()}

    def shown(self) -> dict[str, str | None]:
        """Return what of the target a person sees beside its name."""
        dead = self.dead_letter.stream if self.dead_letter else None
        return {"progress_key": self.target.redis.progress, "dead_letter_stream": dead}

    def told(self) -> Iterator[str]:
        """Give the lines about the target on the page of its DAG."""
        target = self.target.redis
        yield f"- target: Redis stream `{target.stream}`"
        yield "- guarantee: exactly once, as long as Redis keeps what it acknowledged"
        if target.max_length is not None:
            yield f"- kept are about its newest {target.max_length:,} entries"
        if self.dead_letter is not None:
            yield f"- rows that are set aside: stream `{self.dead_letter.stream}`"
        yield f"- progress: `{target.progress}`, written with the rows"


def redis_sink(spec: SinkSpec) -> RedisSink:
    """Return a sink as what its target makes it."""
    if not isinstance(spec, RedisSink):
        raise JobFailedError(f'sink "{spec.name}" has no redis target')
    return spec


def _no_key(spec: RedisSink) -> Iterator[Problem]:
    if spec.target.redis.key:
        yield Problem("target.redis.key", "is not known: entries of a stream do not replace each other")


def _different(spec: RedisSink) -> Iterator[Problem]:
    options = {Role.PROGRESS: "target.redis.progress", Role.DEAD_LETTER: "dead_letter.stream"}
    often = Counter(spec.resources.values())
    for role, option in options.items():
        name = spec.resources.get(role)
        if name is not None and often[name] > 1:
            yield Problem(option, f"{name!r} is another key of the sink", "give it a key of its own")
