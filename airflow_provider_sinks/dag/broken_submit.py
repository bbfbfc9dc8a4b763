"""What runs a sink whose YAML is broken: nothing new, but what was under way before goes on.

In client mode that is nothing to do: the task that runs the driver was read before. On a cluster the driver
outlives the tries of its task. Its trigger rings, or its worker is lost, and then a worker reads the DAG anew
and finds no spec. It takes the one that the driver was launched with, from the note of that launch, and does
with it what the sink's own task would do: it tells how the driver ended, ends it when its time is over, and
launches it again when a connection changed.

A driver is gone on with or ended, never left: a try that fails with what is wrong with the sink leaves none.

The note stands where whoever may trigger the DAG may as a rule write. So its spec counts only if the resource
manager knows a driver of that launch whose tag says that it got that very spec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sinks.arguments import as_list
from airflow_provider_sinks.clients.airflow_sinks import SINK_PREFIX
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.launch.reconnect import NotedLaunch
from airflow_provider_sinks.core.launch.yarn import launch_tag, sink_tag, spec_tag
from airflow_provider_sinks.drivers.on_yarn import yarn_client
from airflow_provider_sinks.operators.submit.cluster_site import noted
from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator
from airflow_provider_sinks.retry_policy import airflow_errors

if TYPE_CHECKING:
    from airflow.sdk import Asset, Context

_UNREAD = "{{ 'the spec that the newest launch noted down' }}"
"""Stands for the sink until a try knows it; what is no template would be judged when the DAG is read."""


class BrokenSubmitOperator(SubmitSinkJobOperator):
    """Go on with the driver of a sink that cannot be read any more, or fail with what is wrong with it.

    :param error: what is wrong, and where.
    :param asset: the sink's.
    :param kwargs: what the sink's own task is given besides.
    """

    ui_color = "#f7c7c7"

    def __init__(self, *, error: ConfigurationError, asset: Asset, **kwargs: Any) -> None:
        outlets = [*as_list(kwargs.pop("outlets", None)), asset]
        super().__init__(**{"name": asset.name, **kwargs, "sink": _UNREAD, "outlets": outlets})
        self.error = error
        self._asset = asset

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        """Go on with a driver that runs. Called for a first try, a retry, and after a clear.

        :raises AirflowFailException: there is none, and none is started.
        """
        with airflow_errors():
            self._take_up(context)
            if not self._come_back(context).is_under_way():
                raise self.error
            return self._run(context)

    def resume_execution(self, next_method: str, next_kwargs: Any, context: Context) -> Any:
        """Do after the triggerer what the sink's own task would do."""
        with airflow_errors():
            self._take_up(context)
        return super().resume_execution(next_method, next_kwargs, context)

    def _take_up(self, context: Context) -> None:
        """Take the spec that the newest launch of this task noted down.

        :raises ConfigurationError: what is wrong with the sink, because nothing was launched on a cluster.
        """
        note = noted(context["task_state_store"]) if "task_state_store" in context else None
        if note is None or not self._was_launched(note):
            raise self.error
        self.log.warning("%s\nWhat launch %d runs goes on with the spec it got.", self.error, note.launch)
        self.sink = dict(note.sink)

    def _was_launched(self, note: NotedLaunch) -> bool:
        name = note.sink.get("name")
        if self._asset is None or self._asset.name != f"{SINK_PREFIX}{name}":
            return False
        wanted = {sink_tag(str(name)), spec_tag(note.sink)}
        known = yarn_client(self.spark_conn_id, self._yarn_rm_auth).tagged(launch_tag(note.launch_id))
        return any(wanted <= app.tags for app in known)
