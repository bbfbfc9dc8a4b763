"""Runs a sink: a Spark job that writes exactly once, started, watched and remembered.

Each run of the task is a *launch*: a private directory on the worker through which the driver is told what to
do and says how it goes (``core/launch``), one run of ``spark-submit``, and one line in the task log for
each epoch. Secrets go through a file of that directory which the driver deletes; they are in no argument,
Spark setting, template field, XCom or log.

A retry, a cleared task and a restart for a connection's sake are all the same: a new launch. It knows from
the target's own progress where to go on, so nothing has to be handed from one try to the next, and in client
mode nothing is kept in the task's state store: a task that is cleared after it succeeded runs again, whether
Airflow keeps that store or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import TaskDeferralTimeout

from airflow_provider_sinks.arguments import as_list, parse, plain
from airflow_provider_sinks.assets import connection_assets, outlets_of_one, sink_asset
from airflow_provider_sinks.core.launch.home import Home
from airflow_provider_sinks.core.launch.status import SinkStatus
from airflow_provider_sinks.core.spec.copies import SETTING, copies_without_spark
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.drivers.on_yarn import yarn_client
from airflow_provider_sinks.hooks.spark import (
    LOG4J2_FILE,
    SparkTarget,
    joined,
    taken_archive,
    with_our_settings,
    with_tags,
)
from airflow_provider_sinks.links import (
    Links,
    SinkStatusLink,
    SparkHistoryLink,
    SparkUILink,
    asset_url,
)
from airflow_provider_sinks.metadata.dags import dag_is_gone
from airflow_provider_sinks.metadata.memory import SinkMemory
from airflow_provider_sinks.metadata.store import store_of
from airflow_provider_sinks.operators.map_index import NamedInstances
from airflow_provider_sinks.operators.submit.arguments import (
    OWNED,
    demand_place_to_wait,
    demand_valid,
)
from airflow_provider_sinks.operators.submit.client_launch import Submission, Submit
from airflow_provider_sinks.operators.submit.cluster_site import site_of
from airflow_provider_sinks.operators.submit.cluster_task import ClusterTask
from airflow_provider_sinks.operators.submit.dag_watch import DagWatch
from airflow_provider_sinks.operators.submit.launch import (
    Listeners,
)
from airflow_provider_sinks.operators.submit.retry_after_change import RetryAfterChange
from airflow_provider_sinks.operators.submit.sink_run import SinkRun
from airflow_provider_sinks.retry_policy import airflow_errors

if TYPE_CHECKING:
    from airflow.sdk import Context


__all__ = ["OWNED", "SubmitSinkJobOperator"]


class SubmitSinkJobOperator(NamedInstances, SparkSubmitOperator):
    """Run a sink until its trigger says that it is done, or for as long as the task runs.

    What cannot heal fails at once (configuration, refused, fenced); what can is retried by Airflow, and the
    next try goes on exactly where this one stopped. Ending the task ends the driver; both stay exact.

    Mapped over sinks, it takes their assets from ``partial(outlets=sink_assets(sinks))`` (see ``assets.py``).
    Without them the witness is kept in the Variable alone, and the sinks are not listed and have no events.

    :param sink: the sink: a ``Sink``, or a mapping with the same keys. (templated)
    :param spark_conn_id: the Airflow connection of type ``spark`` with the master. (templated)
    :param accept: a one-time answer to a refusal: the code that the refusal printed. (templated)
    :param deferrable: wait in the triggerer and hold no worker slot. In client mode, where the driver is a
        process of the worker, it is refused. By default as ``[operators] default_deferrable`` says.
    :param cancel_on_kill: end the driver when the task is cleared or marked while it waits in the triggerer.
    :param status_uri: in cluster mode, the folder or URI for status; by default the checkpoint's. (templated)
    :param follow_connections: launch the sink again, in place, when one of its connections changes.
    :param poll_interval: how often the connections are looked at, in seconds.
    :param own_sinks: for a form, where whoever fills it in names the sink: one that another task has launched
        is refused, and a replay. A sink of a name that is listed here is the form's own also where Airflow
        does not remember who launched it. ``None`` means that the author of the DAG names the sink.
    :param spark: what :class:`SparkSubmitOperator` takes, such as ``packages``, ``jars`` or ``conf``, except
        what this operator owns (``OWNED``). Spark's Kafka source comes by ``packages`` or ``jars``.
    """

    template_fields: Sequence[str] = (
        "sink",
        "accept",
        "spark_conn_id",
        "status_uri",
        *(field for field in SparkSubmitOperator.template_fields if field not in OWNED),
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {"sink": "json", "conf": "json"}
    operator_extra_links = (SparkUILink(), SparkHistoryLink(), SinkStatusLink())
    ui_color = "#cfe8d5"

    def __init__(
        self,
        *,
        sink: SinkSpec | dict[str, Any] | str,
        spark_conn_id: str = "spark_default",
        accept: str | None = None,
        deferrable: bool | None = None,
        cancel_on_kill: bool = True,
        status_uri: str | None = None,
        follow_connections: bool = True,
        poll_interval: float = 10,
        own_sinks: Sequence[str] | None = None,
        **spark: Any,
    ) -> None:
        ours = {
            "sink": sink,
            "spark_conn_id": spark_conn_id,
            "accept": accept,
            "deferrable": deferrable,
            "cancel_on_kill": cancel_on_kill,
            "status_uri": status_uri,
            "follow_connections": follow_connections,
            "poll_interval": poll_interval,
            "own_sinks": own_sinks,
        }
        judged = demand_valid({**ours, **spark})
        data = plain(sink)
        asset = sink_asset(data, judged.sink)
        spark["outlets"] = outlets_of_one(as_list(spark.get("outlets")), asset)
        spark["inlets"] = [*as_list(spark.get("inlets")), *connection_assets(data, judged.sink)]
        spark.setdefault("name", asset.name if asset else "sink")
        super().__init__(**spark)
        self.sink = data
        self.declared = sink
        self.spark_conn_id = spark_conn_id
        self.accept = accept
        self.deferrable = deferrable
        self.cancel_on_kill = cancel_on_kill
        self.status_uri = status_uri
        self.follow_connections = follow_connections
        self.poll_interval = poll_interval
        self.own_sinks = own_sinks
        self.link_urls: dict[str, str] = {}
        self._asset = asset
        self._sink_run: SinkRun | None = None
        self._told_to_stop = False
        self._take_hook: Callable[[SparkSubmitHook], None] | None = None

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        """Launch the sink until it is done, and return what it did, as far as other tasks may care."""
        with airflow_errors():
            demand_valid({name: getattr(self, name) for name in self.template_fields})
            return self._run(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """Take up the task again when the triggerer says that there is something to do."""
        with airflow_errors():
            task = self._come_back(context)
            if task.is_false_alarm(event):
                return self._run(context)
            end = task.settle(event)
            if error := end.error(event["sink"]):
                raise _retry_after_change(context).end(error, end.status)
            if end.changed:
                return self._run(context, end.changed)
            return self._report(context, end.status)

    def _run(self, context: Context, changed: tuple[str, ...] = ()) -> dict[str, Any]:
        """Launch the sink, again and again while its connections change.

        :param changed: the connections that ended the launch before.
        """
        spec, target, listeners = self._circumstances(context)
        demand_place_to_wait(self.deferrable, target, self._yarn_rm_auth)
        self._sink_run = SinkRun(
            spec,
            listeners,
            self._submitter(context, spec, target),
            retry=_retry_after_change(context),
            cluster=self._on_cluster(context, spec, listeners) if target.drives_on_cluster else None,
            asked=self,
            stopping=lambda: self._told_to_stop,
        )
        with self._minding_dag(context, self._sink_run):
            return self._report(context, self._sink_run.run(changed))

    def _minding_dag(self, context: Context, run: SinkRun) -> DagWatch:
        """Return what ends the sink when its DAG is gone for good."""

        def end() -> None:
            self._told_to_stop = True  # a launch that is about to follow ends, too
            run.end_politely()

        return DagWatch(context["ti"].dag_id, lambda: dag_is_gone(context), end, self.log)

    def resume_execution(self, next_method: str, next_kwargs: Any, context: Context) -> Any:
        """Go on after the triggerer; when the time of the task is over, leave no driver behind."""
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        except TaskDeferralTimeout:
            self._come_back(context).give_up()
            raise

    def execute_resumable(self, context: Context) -> Any:
        """Submit. The provider calls it where it would wait; waiting is the launch's own business."""
        return self.submit_job(context)

    def on_kill(self) -> None:
        """Ask the driver to end between two epochs, and end it when it does not.

        Runs in a signal handler, in the middle of anything: it asks Airflow for nothing.
        """
        self._told_to_stop = True
        if self._sink_run is not None:
            self._sink_run.end()

    def _circumstances(self, context: Context) -> tuple[SinkSpec, SparkTarget, Listeners]:
        """Return the sink, where Spark runs it, and who hears of it."""
        spec = parse(self.sink)
        target = SparkTarget.of_connection(self.spark_conn_id, self._deploy_mode)
        links = Links(self, context, target.history_server)
        links.store(SinkStatusLink, asset_url(spec.name))
        store = store_of(context, self._asset)
        home = Home(context["ti"].dag_id, context["ti"].task_id)
        memory = SinkMemory(
            spec.name, store, self.log, follows=self.follow_connections, home=home, own=self.own_sinks
        )
        return spec, target, Listeners(memory, self.log, links.follow)

    def _come_back(self, context: Context) -> ClusterTask:
        """Return the task's part in cluster mode, after the triggerer."""
        spec, _, listeners = self._circumstances(context)
        return self._on_cluster(context, spec, listeners)

    def _on_cluster(self, context: Context, spec: SinkSpec, listeners: Listeners) -> ClusterTask:
        client = yarn_client(self.spark_conn_id, self._yarn_rm_auth)
        wishes: dict[str, Any] = {
            "status_uri": self.status_uri,
            "durable": self.durable,
            "poll_seconds": self.poll_interval,
        }
        return ClusterTask(spec, listeners, site_of(context, spec, client, **wishes))

    def _submitter(self, context: Context, spec: SinkSpec, target: SparkTarget) -> Submit:
        """Return what runs ``spark-submit`` as the provider does, with the user's arguments and ours."""
        users = {name: getattr(self, name) for name in ("py_files", "files", "conf", "env_vars")}
        on_cluster = target.drives_on_cluster

        def submit(submission: Submission, take: Callable[[SparkSubmitHook], None]) -> None:
            self.application = str(submission.application)
            self.application_args = list(submission.arguments)
            self.py_files = joined(submission.py_files, users["py_files"])
            self.files = joined(submission.files, users["files"])
            log4j2_file = LOG4J2_FILE.name if on_cluster else LOG4J2_FILE.as_uri()
            conf, variables = users["conf"] or {}, users["env_vars"] or {}
            archive = None if on_cluster else taken_archive(target.binary, variables, conf)
            has_rows = not copies_without_spark(spec, conf.get(SETTING))
            settings = with_our_settings(
                conf, variables, target.master, log4j2_file, archive, has_rows=has_rows
            )
            self.conf = with_tags(settings, submission.tags) if on_cluster else settings
            self._yarn_track_via_rm_api = on_cluster
            self._conn_id = self.spark_conn_id
            self._java_class = self.properties_file = None  # default_args may name them for other tasks
            self.env_vars = users["env_vars"]
            if archive is not None:
                self.env_vars = {**variables, **archive.variables}
                self.properties_file = archive.properties_file
            self._hook, self._take_hook = None, take
            super(SubmitSinkJobOperator, self).execute(context)

        return submit

    def _get_hook(self) -> SparkSubmitHook:
        """Return the provider's hook, which the launch has taken into its hands."""
        hook = super()._get_hook()
        if self._take_hook is not None:
            self._take_hook(hook)
        return hook

    def _report(self, context: Context, status: SinkStatus | None) -> dict[str, Any]:
        """Return the end, and let the asset's event carry it."""
        if status is None:
            return {}
        names = ("sink", "launch", "generation", "epoch", "rows", "rows_total", "dead_total")
        report = {name: getattr(status, name) for name in names}
        if self._asset is not None:
            context["outlet_events"][self._asset].extra = dict(report)
        return report


def _retry_after_change(context: Context) -> RetryAfterChange:
    return RetryAfterChange(context["task_state_store"])
