"""One look at a sink's topics from Airflow, and what a start would make of it: a verdict, whatever happens.

What cannot be seen is a verdict too (*wait*, with what could not be seen), so that a sensor, its trigger and
anybody else who looks treats a hidden topic, a broker that is away and a memory that cannot be read alike.

The order is memory, then topics. A witness lags behind the progress topic and never runs ahead of it; read
after the topics it could hold an epoch that was committed meanwhile, and the sink would look rolled back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from airflow_provider_sinks.core.decision.decide import decide
from airflow_provider_sinks.core.decision.facts import Observation
from airflow_provider_sinks.core.decision.start_request import start_request
from airflow_provider_sinks.core.decision.verdict import Verdict, VerdictKind, render
from airflow_provider_sinks.core.errors import ConfigurationError, SinkError, UnavailableError
from airflow_provider_sinks.core.schemas.plan import SchemaPlan, SchemaState
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.hooks.connections import resolve
from airflow_provider_sinks.metadata.memory import Memory

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.observer import SinkObserver

_READ_SECONDS = 30.0
"""How long one look reads the progress topic. An open transaction is waited for by looking again."""

_NOT_COMPARED = (
    "the columns of the query were not compared with the target's, because Spark was not asked: "
    "airflow sinks plan {} asks it"
)


@dataclass(frozen=True)
class DryRun:
    """What was seen, and what it leads to.

    :param observation: the facts; ``None`` when a cluster or Airflow's memory did not answer at all.
    :param engine_guarantee: what Spark guarantees, where its own writer writes.
    :param schemas: what a start would do about the schemas of keys and values, where Spark was asked.
    """

    verdict: Verdict
    observation: Observation | None = None
    engine_guarantee: str = ""
    schemas: tuple[SchemaPlan, ...] = ()

    @property
    def waits(self) -> bool:
        """Something could not be seen; looking again may help."""
        return self.verdict.kind is VerdictKind.WAIT

    def error(self) -> SinkError | None:
        """Return the error that ends such a start, or ``None`` if the sink may run."""
        if refused := [one.problem("target") for one in self.schemas if not one.may_start]:
            return ConfigurationError("the sink may not write by its schemas", refused)
        return self.verdict.error()

    def __str__(self) -> str:
        seen = render(self.observation, self.verdict) if self.observation else f"verdict: {self.verdict}"
        guarantee = [f"guarantee: {self.engine_guarantee}"] if self.engine_guarantee else []
        return "\n".join([seen, *(line for one in self.schemas for line in _lines(one)), *guarantee])

    def to_mapping(self) -> dict[str, Any]:
        """Return it as plain JSON values, for XCom."""
        found: dict[str, Any] = {
            "observation": _facts(self.observation),
            "verdict": _decision(self.verdict),
            "schemas": [_schema(one) for one in self.schemas],
        }
        return found | ({"guarantee": self.engine_guarantee} if self.engine_guarantee else {})


class Remembers(Protocol):
    """Knows what Airflow remembers of one sink."""

    def recall(self) -> Memory:
        """Return it.

        :raises UnavailableError: it could not be read.
        """


def dry_run(
    spec: SinkSpec,
    memory: Remembers,
    accept: str | None = None,
    output: Mapping[str, Any] | None = None,
) -> DryRun:
    """Look once. Creates nothing, and returns within about a minute even when nothing answers.

    :param memory: what Airflow remembers of the sink.
    :param accept: a one-time answer to a refusal.
    :param output: the query's columns, as Spark writes a struct as JSON, where Spark was asked.
    :raises ConfigurationError: a connection cannot be used, or the columns do not fit the target.
    :raises AuthenticationError: a cluster refused the credentials.
    """
    from airflow_provider_sinks.connectors.observer import SinkObserver

    try:
        connections = resolve(spec)
        remembered = memory.recall()
        with SinkObserver(spec, connections, _READ_SECONDS) as observer:
            if output is not None:
                observer.expect(output)
            observation = observer.observe()
            schemas = _schemas(observer, output)
    except UnavailableError as error:
        return DryRun(
            Verdict(VerdictKind.WAIT, error.primary, error.detail, error.hint), None, spec.engine_guarantee
        )
    verdict = decide(observation, start_request(spec, remembered.owner, remembered.witness), accept)
    if spec.on_schema_change.adds and output is None:
        verdict = replace(verdict, warnings=(*verdict.warnings, _NOT_COMPARED.format(spec.name)))
    return DryRun(verdict, observation, spec.engine_guarantee, schemas)


def _schemas(observer: SinkObserver, output: Mapping[str, Any] | None) -> tuple[SchemaPlan, ...]:
    """Ask the target's registry what a start would do; registers nothing."""
    aware = observer.connector.as_schema_registry_aware() if output is not None else None
    return tuple(aware.plan(output)) if aware is not None and output is not None else ()


def _lines(schema: SchemaPlan) -> Iterator[str]:
    """Give what a start would do about a schema, and what it would register."""
    told = f"schema of the {schema.part}: {schema.told}"
    yield told if schema.may_start else f"refused: {told} ({schema.problem().hint})"
    if schema.state is not SchemaState.REGISTERED:
        yield from (f"  {line}" for line in schema.text.splitlines())


def _schema(schema: SchemaPlan) -> dict[str, Any]:
    return {
        "part": schema.part.value,
        "subject": schema.subject,
        "state": schema.state.value,
        "level": schema.level.value,
        "id": schema.id,
        "compared_with_version": schema.version or None,
        "reasons": list(schema.reasons),
        "text": schema.text,
    }


def _facts(observation: Observation | None) -> dict[str, Any] | None:
    if observation is None:
        return None
    topics = {
        role.name.lower(): {
            "name": facts.name,
            "existence": facts.existence.value,
            "reason": facts.reason,
            "topic_id": facts.id,
            "partitions": facts.partitions,
            "records": facts.records,
        }
        for role, facts in observation.resources().items()
    }
    return {"at": observation.at, "topics": topics}


def _decision(verdict: Verdict) -> dict[str, Any]:
    return {
        "kind": verdict.kind.value,
        "primary": verdict.primary,
        "detail": verdict.detail,
        "hint": verdict.hint,
        "actions": list(verdict.acts()),
        "warnings": _texts(verdict.warnings),
        "ways": [offer.code for offer in verdict.offers],
        "generation": verdict.generation,
        "spec": verdict.redefinition.to_mapping() if verdict.redefinition else None,
        "positions": {str(partition): offset for partition, offset in (verdict.positions or {}).items()},
    }


def _texts(things: Sequence[object]) -> list[str]:
    return [str(thing) for thing in things]
