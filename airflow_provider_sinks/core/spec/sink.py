"""What the user wants: one sink, frozen and checked.

``SinkSpec.parse`` takes what Python, YAML and JSON have in common, a mapping, and reports every problem at
once. The other way, ``to_json`` writes a canonical text: it is what travels to the job, stands in the
progress record, and is digested.

>>> from airflow_provider_sinks.core.decision.facts import Role
>>> spec = SinkSpec.parse({"name": "mirror", "source": "prod/clicks", "target": "prod/clicks-copy"})
>>> spec.target_connection, spec.writer_mode.value, spec.resources[Role.PROGRESS]
('prod', 'per_partition', '_sinks-progress-mirror')
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any

from pydantic import ConfigDict, Field, ValidationError, field_validator
from pydantic.json_schema import SkipJsonSchema

from airflow_provider_sinks.core.dead_letters.limits import SetAsideLimits
from airflow_provider_sinks.core.dead_letters.replay import Replay
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.evolution import OnSchemaChange
from airflow_provider_sinks.core.query.analysis import QueryShape, analyse, select_sql
from airflow_provider_sinks.core.query.rewrite import row_wise_sql
from airflow_provider_sinks.core.query.sql import SqlError
from airflow_provider_sinks.core.spec import rules
from airflow_provider_sinks.core.spec.fields import (
    VIEW_PATTERN,
    Checkpoint,
    PatienceBound,
    SinkName,
    Text,
    TransactionTimeout,
    ViewName,
)
from airflow_provider_sinks.core.spec.kinds import not_installed, sink_model, unknown_kind
from airflow_provider_sinks.core.spec.parts import (
    ConnectedTarget,
    DeadLetterPart,
    EvolvingTarget,
    Format,
    Lookup,
    OutputMode,
    Part,
    Target,
    Trigger,
    Writers,
)
from airflow_provider_sinks.core.spec.problems import UnfitError, problems_of
from airflow_provider_sinks.core.spec.schema_options import READS_FILES
from airflow_provider_sinks.core.spec.source import Source, SourceEnvelope
from airflow_provider_sinks.core.spec.target_answers import TargetAnswers

_MEANS_NO_ROWS = frozenset({"patience"})
"""Options that change no row, nor where it goes."""
LOOKUP_REFRESH = timedelta(seconds=60)


class SinkSpec(TargetAnswers, ABC):
    """A sink: where rows come from, what happens to them, where they go."""

    model_config = ConfigDict(title="Sink")

    name: SinkName
    source: Source
    lookups: dict[ViewName, Lookup] = Field(
        default_factory=dict, json_schema_extra={"propertyNames": {"pattern": VIEW_PATTERN}}
    )
    select: Annotated[tuple[Text, ...], Field(min_length=1)] | None = None
    where: Text | None = None
    query: Text | None = None
    target: Target
    trigger: Trigger = Trigger.model_construct()
    dead_letter: Part | None = None
    progress: Part | None = None
    """Where the progress is kept, for a kind of target that does not say so by an option of its own."""
    writers: Writers | None = None
    output_mode: OutputMode | None = None
    checkpoint: Checkpoint | None = None
    transaction_timeout: TransactionTimeout = timedelta(seconds=60)
    patience: PatienceBound = timedelta(minutes=5)
    replay: SkipJsonSchema[Replay | None] = None
    """The dead letters that it reads as its source, if it is a replay; written by none but ourselves."""

    @field_validator("progress", mode="before")
    @classmethod
    def _named_once(cls, value: Any) -> Any:
        if value is not None and cls.progress_option:
            raise UnfitError("is no option of this target", f"name its progress by {cls.progress_option}")
        return value

    @classmethod
    def parse(cls, data: Mapping[str, Any], *, reads_files: bool = False) -> SinkSpec:
        """Read a sink.

        :param reads_files: whether it is being declared by its author, so that a schema may be in a file.
        :raises ConfigurationError: with all problems at once, in the order of the input.
        """
        if not isinstance(data, Mapping):
            raise ConfigurationError("the sink is not valid", [Problem("", "must be a mapping of options")])
        model = sink_model(data.get("target"))
        shown = model.completed(data)
        problems: list[Problem] = []
        if unknown := unknown_kind(data.get("target")):
            problems.append(not_installed(unknown))
            shown["target"] = model.right_target
        broken: frozenset[str] = frozenset()
        context = {READS_FILES: reads_files}
        try:
            spec = model.model_validate(shown, context=context)
        except ValidationError as error:
            problems += problems_of(error, model)
            broken = frozenset(str(details["loc"][0]) for details in error.errors() if details["loc"])
            right = {key: value for key, value in shown.items() if str(key) not in broken}
            spec = model.model_validate({**_RIGHT, "target": model.right_target, **right}, context=context)
        problems += rules.check(spec, broken)
        if problems:
            raise _not_valid(data.get("name"), problems)
        return spec

    def with_trigger(self, trigger: Mapping[str, Any]) -> SinkSpec:
        """Return the same sink with another trigger.

        :raises ConfigurationError: the trigger is not valid, or does not go with the rest.
        """
        try:
            found = self.model_copy(update={"trigger": Trigger.model_validate(trigger)})
        except ValidationError as error:
            problems = [replace(one, where=f"trigger.{one.where}") for one in problems_of(error, Trigger)]
            raise _not_valid(self.name, problems) from None
        if problems := list(rules.check(found, frozenset())):
            raise _not_valid(self.name, problems)
        return found

    def with_replay(self, replay: Replay) -> SinkSpec:
        """Return the same sink as a replay of these dead letters."""
        return self.model_copy(update={"replay": replay})

    def to_mapping(self) -> dict[str, Any]:
        """Return it as plain JSON values, every default spelt out."""
        found: dict[str, Any] = json.loads(self.to_json())
        return found

    def to_json(self) -> str:
        """Write it canonically: sorted, every default spelt out, durations in their largest unit."""
        return self._written()

    def _written(self, without: frozenset[str] = frozenset()) -> str:
        data = self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=set(without))
        return json.dumps(data, sort_keys=True, separators=(",", ":"))

    @property
    def digest(self) -> str:
        """Sixteen hexadecimal digits that change when the meaning may have changed."""
        return hashlib.sha256(self._written(without=_MEANS_NO_ROWS).encode()).hexdigest()[:16]

    @property
    def sql(self) -> str:
        """The query as the user means it, also where it was written as ``select`` and ``where``."""
        return self.query if self.query is not None else select_sql(self.select, self.where)

    @property
    def shape(self) -> QueryShape:
        """What the SQL says about itself."""
        named = {name: lookup.postgres.columns for name, lookup in self.lookups.items()}
        known = {name: columns for name, columns in named.items() if columns is not None}
        return analyse(self.sql, tuple(self.lookups), self.source_columns, known)

    @property
    def readable_shape(self) -> QueryShape | None:
        """What the SQL says about itself, or None while the SQL cannot be read."""
        try:
            return self.shape
        except SqlError:
            return None

    @property
    def job_sql(self) -> str:
        """The query that the job runs: with the source coordinates in it where the query is row-wise."""
        has_deletes = self.source_has_deletes
        return row_wise_sql(self.shape, has_deletes=has_deletes) if self.shape.row_wise else self.sql

    @property
    def source_connection(self) -> str:
        """The id of the source's Airflow connection."""
        return self.source.kafka.connection

    @property
    def source_topic(self) -> str:
        """The name of what is read."""
        return self.source.kafka.topic

    @property
    def source_envelope(self) -> SourceEnvelope | None:
        """What a record of the source says, where it is more than a row."""
        return self.source.kafka.envelope

    @property
    def source_has_deletes(self) -> bool:
        """Whether a record of the source may take a row away."""
        return self.source.kafka.has_deletes

    @property
    def source_columns(self) -> tuple[str, ...] | None:
        """The user's columns of the view ``source``; None if the schema cannot be read."""
        return self.source.kafka.columns

    def with_source_schemas(self, value: str | None, key: str | None) -> SinkSpec:
        """Return the sink with the schemas of its source written down, as a registry has them now.

        What the job runs and a validation analyses; what is recorded stays as the user wrote it.

        :param value: of the values, standing by itself; ``None`` leaves it as it is.
        :param key: of the keys, likewise.
        """
        kafka = self.source.kafka.with_schemas(value, key)
        return self.model_copy(update={"source": self.source.model_copy(update={"kafka": kafka})})

    @property
    def writer_mode(self) -> Writers:
        """Who writes, resolved: per partition wherever the query allows it."""
        return self.writers or (Writers.PER_PARTITION if self.shape.row_wise else Writers.SINGLE)

    @property
    def stream_mode(self) -> OutputMode:
        """The output mode, resolved."""
        return self.output_mode or (OutputMode.UPDATE if self.shape.stateful else OutputMode.APPEND)

    @property
    def target_kind(self) -> str:
        """The name of the target's connector."""
        return self.target.kind

    @property
    def target_connection(self) -> str | None:
        """The id of the target's Airflow connection, where it needs one."""
        options = self.target.options
        return options.connection if isinstance(options, ConnectedTarget) else None

    @property
    def set_aside_limits(self) -> SetAsideLimits:
        """How much may be set aside at once."""
        found = self.dead_letter
        return found.limits if isinstance(found, DeadLetterPart) else SetAsideLimits()

    @property
    def reads_headers(self) -> bool:
        """Whether the headers of the source's records are read."""
        return self.dead_letter is not None

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns of the output by which rows are told apart, as the target's options name them."""
        return tuple(getattr(self.target.options, "key", ()))

    @property
    def connections(self) -> tuple[str, ...]:
        """The ids of all Airflow connections that it names, sorted."""
        named = {self.source_connection, *filter(None, [self.target_connection]), *self.registries}
        return tuple(sorted(named | {lookup.postgres.connection for lookup in self.lookups.values()}))

    @property
    def registries(self) -> tuple[str, ...]:
        """The ids of the Airflow connections of schema registries that it names."""
        kafka = self.source.kafka
        own = (kafka.registry,) if kafka.registry is not None and kafka.uses_registry else ()
        return tuple(dict.fromkeys((*own, *self.target_registries)))

    @property
    def registered_formats(self) -> frozenset[Format]:
        """The formats of its source and target whose schemas a registry has."""
        return self.source.kafka.registered_formats

    @property
    def on_schema_change(self) -> OnSchemaChange:
        """What a start does where the target's columns are others; a target without the option refuses."""
        options = self.target.options
        return options.may_change if isinstance(options, EvolvingTarget) else OnSchemaChange.REFUSE

    def refresh_of(self, lookup: str) -> timedelta | None:
        """Return how old a lookup's rows may be: 60 s in row-wise queries where the spec says nothing."""
        given = self.lookups[lookup].postgres.refresh
        return given if given is not None else LOOKUP_REFRESH if self.shape.row_wise else None


def _not_valid(name: object, problems: list[Problem]) -> ConfigurationError:
    which = f'sink "{name}"' if isinstance(name, str) else "the sink"
    return ConfigurationError(f"{which} is not valid", problems)


_RIGHT = {"name": "sink", "source": "a/b"}
"""Stands for required fields that are wrong, while the rules between the others are asked."""


__all__ = ["OutputMode", "SinkSpec", "Writers"]
