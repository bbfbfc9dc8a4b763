"""The verbs of a sink's life as tasks: pause, resume, restart, rewind, reset, drop.

Each logs the plan that it is about to carry out, then each step as it is done, and returns the plan as its
XCom: ``{sink, what, steps, warnings, dry_run}``. ``airflow sinks ...`` does the same by the same functions.

They act in Airflow through its REST API, as the user of ``airflow_api_conn_id``: a task may not pause a DAG
or end a task by itself. Rewind and reset act in the target too, with the sink's own connections, and on a
sink at rest only: while a task of it runs, waits or is about to, they fail and name it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperator

from airflow_provider_sinks.arguments import is_template, plain
from airflow_provider_sinks.core.connection.airflow_account import CONN_ID
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.lifecycle.new_generation import Output, Reset
from airflow_provider_sinks.core.lifecycle.rewind_request import RewindRequest
from airflow_provider_sinks.core.lifecycle.steps import Plan
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.operators.arguments import flag_of_form
from airflow_provider_sinks.operators.verbs.arguments import (
    DropArguments,
    ResetArguments,
    RewindArguments,
    VerbArguments,
    name_of,
)
from airflow_provider_sinks.retry_policy import airflow_errors

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_sinks.lifecycle.verbs import SinkVerbs

__all__ = [
    "DropSinkOperator",
    "PauseSinkOperator",
    "ResetSinkOperator",
    "RestartSinkOperator",
    "ResumeSinkOperator",
    "RewindSinkOperator",
    "SinkVerbOperator",
]


class SinkVerbOperator(BaseOperator):
    """What the verbs have in common.

    :param sink: the sink's name, or the sink itself. (templated)
    :param airflow_api_conn_id: the connection of type ``http`` to Airflow's REST API. (templated)
    :param dry_run: only log and return the plan. (templated)
    """

    template_fields: Sequence[str] = ("sink", "airflow_api_conn_id", "dry_run")
    ui_color = "#f3e2c8"
    _judged: ClassVar[type[VerbArguments]] = VerbArguments

    def __init__(
        self,
        *,
        sink: SinkSpec | Mapping[str, Any] | str,
        airflow_api_conn_id: str = CONN_ID,
        dry_run: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.sink = plain(sink)
        self.airflow_api_conn_id = airflow_api_conn_id
        self.dry_run = dry_run  # type: ignore[method-assign, assignment] # hides an unused method
        self._demand_valid()

    def execute(self, context: Context) -> dict[str, Any]:
        """Say what will be done, do it, and return the plan."""
        del context
        from airflow_provider_sinks.hooks.airflow_account import airflow_api
        from airflow_provider_sinks.lifecycle.verbs import SinkVerbs
        from airflow_provider_sinks.metadata.sink_homes import SinkHomes

        with airflow_errors():
            self._demand_valid()
            dry_run = flag_of_form(self.dry_run)
            with airflow_api(self.airflow_api_conn_id) as api:
                verbs = SinkVerbs(SinkHomes(api), dry_run=dry_run, confirm=self._say_plan, say=self._say_done)
                plan = self._act(verbs, name_of(self.sink))
            self.log.info("dry run: %s" if dry_run else "%s", plan if dry_run else plan.what)
        return {**plan.to_mapping(), "dry_run": dry_run}

    @abstractmethod
    def _act(self, verbs: SinkVerbs, sink: str) -> Plan:
        """Do what this operator is for."""

    def _problems(self) -> Iterator[Problem]:
        """Judge what hangs on several arguments."""
        yield from ()

    def _demand_valid(self) -> None:
        """Judge the arguments, rendered or literal; a template is judged once it is rendered."""
        given = {name: getattr(self, name) for name in self._judged.model_fields}
        self._judged.read(f"{type(self).__name__} cannot be used like this", given, self._problems())

    def _say_plan(self, plan: Plan) -> None:
        self.log.info("%s", plan)

    def _say_done(self, step: str) -> None:
        self.log.info("done: %s", step)


class PauseSinkOperator(SinkVerbOperator):
    """Let nothing start a sink any more, and end what runs; nothing is lost or written twice.

    Pauses each DAG that runs the sink, and marks its tasks as failed. Other sinks of such a DAG go on until
    they end by themselves; the plan names them.

    :param sink: the sink's name, or the sink itself. (templated)
    :param airflow_api_conn_id: the connection of type ``http`` to Airflow's REST API. (templated)
    :param dry_run: only log and return the plan. (templated)
    """

    def _act(self, verbs: SinkVerbs, sink: str) -> Plan:
        return verbs.pause(sink)


class ResumeSinkOperator(SinkVerbOperator):
    """Let a sink be started again: unpause its DAGs, and start a run of those that have no schedule.

    :param sink: the sink's name, or the sink itself. (templated)
    :param airflow_api_conn_id: the connection of type ``http`` to Airflow's REST API. (templated)
    :param dry_run: only log and return the plan. (templated)
    """

    def _act(self, verbs: SinkVerbs, sink: str) -> Plan:
        return verbs.resume(sink)


class RestartSinkOperator(SinkVerbOperator):
    """End the driver of a sink and start another: clear its task. A sink that does not run is refused.

    :param sink: the sink's name, or the sink itself. (templated)
    :param airflow_api_conn_id: the connection of type ``http`` to Airflow's REST API. (templated)
    :param dry_run: only log and return the plan. (templated)
    """

    def _act(self, verbs: SinkVerbs, sink: str) -> Plan:
        return verbs.restart(sink)


class RewindSinkOperator(SinkVerbOperator):
    """Let a stopped sink read a part of its source again, as a new generation: give one of three places.

    :param sink: the sink's name, or the sink itself. (templated)
    :param offsets: by source partition, a mapping or text such as ``0:120, 1:earliest``; the others stay
        where they are. (templated)
    :param time: ISO 8601 with a zone: from the first record that is not older. (templated)
    :param epoch: the first epoch that is written again, if the records still tell of it. (templated)
    :param generation: the generation of that epoch; by default the newest. (templated)
    :param skip: offsets may lie ahead; what is between is never read. (templated)
    :param airflow_api_conn_id: the connection of type ``http`` to Airflow's REST API. (templated)
    :param dry_run: only log and return the plan. (templated)
    """

    template_fields: Sequence[str] = (
        *SinkVerbOperator.template_fields,
        "offsets",
        "time",
        "epoch",
        "generation",
        "skip",
    )
    _judged = RewindArguments

    def __init__(
        self,
        *,
        offsets: Mapping[int, int | str] | str | None = None,
        time: str | None = None,
        epoch: int | str | None = None,
        generation: int | str | None = None,
        skip: bool | str = False,
        **kwargs: Any,
    ) -> None:
        self.offsets = offsets
        self.time = time
        self.epoch = epoch
        self.generation = generation
        self.skip = skip
        super().__init__(**kwargs)

    def _act(self, verbs: SinkVerbs, sink: str) -> Plan:
        return verbs.rewind(sink, self._ask())

    def _ask(self) -> RewindRequest:
        return RewindRequest.parse(
            offsets=self.offsets,
            time=self.time,
            epoch=self.epoch,
            generation=self.generation,
            skip=flag_of_form(self.skip),
        )

    def _problems(self) -> Iterator[Problem]:
        given = (self.offsets, self.time, self.epoch, self.generation, self.skip)
        if not any(map(is_template, given)) and not RewindArguments.problems({"skip": self.skip}):
            try:
                self._ask()
            except ConfigurationError as error:
                yield from error.problems


class ResetSinkOperator(SinkVerbOperator):
    """Let a stopped sink begin anew where its spec says that it starts, as a new generation.

    :param sink: the sink's name, or the sink itself. (templated)
    :param data: what becomes of the data topic or table: ``keep``, ``empty`` or ``recreate``. (templated)
    :param dead_letter: what becomes of the one of dead letters, likewise. (templated)
    :param airflow_api_conn_id: the connection of type ``http`` to Airflow's REST API. (templated)
    :param dry_run: only log and return the plan. (templated)
    """

    template_fields: Sequence[str] = (*SinkVerbOperator.template_fields, "data", "dead_letter")
    _judged = ResetArguments

    def __init__(self, *, data: str = "keep", dead_letter: str = "keep", **kwargs: Any) -> None:
        self.data = data
        self.dead_letter = dead_letter
        super().__init__(**kwargs)

    def _act(self, verbs: SinkVerbs, sink: str) -> Plan:
        return verbs.reset(sink, Reset(Output(self.data), Output(self.dead_letter)))


class DropSinkOperator(SinkVerbOperator):
    """Stop a sink and forget it. Its topics stay, but for those that are named.

    :param sink: the sink's name, or the sink itself. (templated)
    :param delete_topics: topics or tables of the sink to delete with it, by name. (templated)
    :param airflow_api_conn_id: the connection of type ``http`` to Airflow's REST API. (templated)
    :param dry_run: only log and return the plan. (templated)
    """

    template_fields: Sequence[str] = (*SinkVerbOperator.template_fields, "delete_topics")
    _judged = DropArguments

    def __init__(self, *, delete_topics: Sequence[str] = (), **kwargs: Any) -> None:
        self.delete_topics = delete_topics
        super().__init__(**kwargs)

    def _act(self, verbs: SinkVerbs, sink: str) -> Plan:
        return verbs.drop(sink, self.delete_topics)
