"""Replays dead letters of a sink: begins the replay, then runs the sink that it is, until it is done.

A replay is a bounded sink of its own, ``<sink>-replay``, with the sink's query and target as they are now
(``core/dead_letters/replay.py`` says why each letter leads to its rows once). The first task decides which
letters are taken and records that; the second makes the sink anew and takes nothing but those bounds from the
first, because whoever may edit XComs may have written what stands there. Either may be tried again, killed
and cleared at any time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import TaskGroup
from airflow.sdk.exceptions import AirflowSkipException

from airflow_provider_sinks.arguments import is_template
from airflow_provider_sinks.clients.airflow_sinks import SINK_PREFIX
from airflow_provider_sinks.core.connection.airflow_account import CONN_ID
from airflow_provider_sinks.core.dead_letters.replay import SUFFIX
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.lifecycle.replay import ReplayRequest
from airflow_provider_sinks.core.lifecycle.steps import Plan
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.dag.settings import check_spark_arguments
from airflow_provider_sinks.operators.arguments import flag_of_form
from airflow_provider_sinks.operators.sink_life import SinkVerbOperator
from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator
from airflow_provider_sinks.operators.verbs.arguments import ReplayArguments, name_of
from airflow_provider_sinks.retry_policy import airflow_errors

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_sinks.lifecycle.verbs import SinkVerbs

__all__ = ["BeginReplayOperator", "ReplayTaskGroup", "SubmitReplayOperator"]

_UNREAD = "{{ 'the replay of the sink that a DAG names' }}"
"""Stands for the sink until a try makes it; what is no template would be judged when the DAG is read."""


class BeginReplayOperator(SinkVerbOperator):
    """Say which dead letters of a sink are replayed, and begin the replay; the sink may run meanwhile.

    Returns its plan, with the sink that is to be run as ``replay``, a spec as a mapping; a task is skipped,
    and those behind it, where there is nothing to replay. What was asked for and left unfinished goes on.

    :param sink: the sink's name, or the sink itself. (templated)
    :param error: a class of errors (``parse``, ``convert``, ``too_large``, ``refused``) or a part of their
        text; several as a list, or one a line. (templated)
    :param since: ISO 8601 with a zone: set aside then or later. (templated)
    :param before: likewise: set aside before. (templated)
    :param offsets: of the dead-letter topic, such as ``0:120-140, 1:7``. (templated)
    :param overwrite: replayed rows may take the place of newer ones of their key. (templated)
    :param forget: where the progress of earlier replays is lost, what they took may be taken again.
        (templated)
    :param airflow_api_conn_id: the connection of type ``http`` to Airflow's REST API. (templated)
    :param dry_run: only log and return the plan. (templated)
    """

    template_fields: Sequence[str] = (
        *SinkVerbOperator.template_fields,
        "error",
        "since",
        "before",
        "offsets",
        "overwrite",
        "forget",
    )
    _judged = ReplayArguments

    def __init__(
        self,
        *,
        error: Sequence[str] | str | None = None,
        since: str | None = None,
        before: str | None = None,
        offsets: str | None = None,
        overwrite: bool | str = False,
        forget: bool | str = False,
        **kwargs: Any,
    ) -> None:
        self.error = error
        self.since = since
        self.before = before
        self.offsets = offsets
        self.overwrite = overwrite
        self.forget = forget
        self._replay: SinkSpec | None = None
        super().__init__(**kwargs)

    def execute(self, context: Context) -> dict[str, Any]:
        """Say what will be replayed, begin it, and return the plan with the sink to run."""
        plan = super().execute(context)
        if self._replay is None:
            raise AirflowSkipException(plan["what"])
        return plan if plan["dry_run"] else {**plan, "replay": self._replay.to_mapping()}

    def _act(self, verbs: SinkVerbs, sink: str) -> Plan:
        begun = verbs.replay(sink, self._ask())
        self._replay = begun.sink
        return begun.plan

    def _ask(self) -> ReplayRequest:
        error = self.error.splitlines() if isinstance(self.error, str) else self.error
        return ReplayRequest.parse(
            error=error,
            since=self.since,
            before=self.before,
            offsets=self.offsets,
            overwrite=flag_of_form(self.overwrite),
            forget=flag_of_form(self.forget),
        )

    def _problems(self) -> Iterator[Problem]:
        flags = {"overwrite": self.overwrite, "forget": self.forget}
        given = (self.error, self.since, self.before, self.offsets, *flags.values())
        if not any(map(is_template, given)) and not ReplayArguments.problems(flags):
            try:
                self._ask()
            except ConfigurationError as error:
                yield from error.problems


class SubmitReplayOperator(SubmitSinkJobOperator):
    """Run a replay that another task has begun, until it is done.

    The sink is the one that its DAG names, with its query and target as they are now. What the other task
    returned says no more than which letters are taken, and the start of the job refuses it where the
    progress of the replay does not say the same: so an XCom that somebody edited leads no row anywhere else.

    :param replays: the name of the sink whose dead letters are replayed. (templated)
    :param begun: what :class:`BeginReplayOperator` returned as ``replay``. (templated)
    :param airflow_api_conn_id: the connection of type ``http`` to Airflow's REST API. (templated)
    :param kwargs: what :class:`SubmitSinkJobOperator` takes, but for ``sink``.
    """

    template_fields: Sequence[str] = (
        *SubmitSinkJobOperator.template_fields,
        "replays",
        "begun",
        "airflow_api_conn_id",
    )

    def __init__(
        self,
        *,
        replays: str,
        begun: Mapping[str, Any] | str,
        airflow_api_conn_id: str = CONN_ID,
        **kwargs: Any,
    ) -> None:
        super().__init__(**{"name": f"{SINK_PREFIX}{replays}{SUFFIX}", **kwargs, "sink": _UNREAD})
        self.replays = replays
        self.begun = begun
        self.airflow_api_conn_id = airflow_api_conn_id

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        """Run the replay, as any sink. Called for a first try, a retry, and after a clear."""
        with airflow_errors():
            self._make_sink()
        return super().execute(context)

    def resume_execution(self, next_method: str, next_kwargs: Any, context: Context) -> Any:
        """Go on after the triggerer with the sink as it is then."""
        with airflow_errors():
            self._make_sink()
        return super().resume_execution(next_method, next_kwargs, context)

    def _make_sink(self) -> None:
        from airflow_provider_sinks.hooks.airflow_account import airflow_api
        from airflow_provider_sinks.lifecycle.replays import as_begun
        from airflow_provider_sinks.lifecycle.verbs import SinkVerbs
        from airflow_provider_sinks.metadata.sink_homes import SinkHomes

        with airflow_api(self.airflow_api_conn_id) as api:
            base = SinkVerbs(SinkHomes(api)).replaying(self.replays)
        self.sink = as_begun(base, self.begun).to_mapping()


class ReplayTaskGroup(TaskGroup):
    """The tasks of a replay inside a DAG of yours: begin >> submit.

    :param sink: the sink whose dead letters are replayed, or its name.
    :param group_id: ``replay_dead_letters``, if left out.
    :param asked: what :class:`BeginReplayOperator` takes: ``error``, ``since``, ``before``, ``offsets``,
        ``overwrite``, ``forget``.
    :param airflow_api_conn_id: the connection of type ``http`` to Airflow's REST API.
    :param spark_conn_id: the Airflow connection of type ``spark``.
    :param spark: more arguments of :class:`SubmitSinkJobOperator`, such as ``packages``.
    :param group: what :class:`airflow.sdk.TaskGroup` takes.
    :raises ConfigurationError: an argument is not known, or does not fit.
    """

    def __init__(
        self,
        sink: SinkSpec | Mapping[str, Any] | str,
        *,
        group_id: str = "replay_dead_letters",
        asked: Mapping[str, Any] | None = None,
        airflow_api_conn_id: str = CONN_ID,
        spark_conn_id: str = "spark_default",
        spark: Mapping[str, Any] | None = None,
        **group: Any,
    ) -> None:
        check_spark_arguments("ReplayTaskGroup()", {} if spark is None else spark)
        super().__init__(group_id=group_id, **group)
        with self:
            begin = BeginReplayOperator(
                task_id="begin", sink=sink, airflow_api_conn_id=airflow_api_conn_id, **(asked or {})
            )
            begin >> replaying(begin, spark_conn_id, spark)


def replaying(
    begin: BeginReplayOperator, spark_conn_id: str, spark: Mapping[str, Any] | None, **more: Any
) -> SubmitReplayOperator:
    """Return the task that runs what another one has begun."""
    pulled = f"{{{{ (ti.xcom_pull({json.dumps(begin.task_id)}) or {{}}).get('replay') | tojson }}}}"
    return SubmitReplayOperator(
        task_id="submit",
        replays=name_of(begin.sink),
        begun=pulled,
        airflow_api_conn_id=begin.airflow_api_conn_id,
        spark_conn_id=spark_conn_id,
        **{"retries": 2, **more, **(spark or {})},
    )
