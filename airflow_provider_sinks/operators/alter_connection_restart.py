"""Alters a connection under running sinks: checked first, changed once, waited for, and put back if need be.

A task can only read connections, so the change goes through Airflow's REST API as a user of its own. The
sinks launch again by themselves (``follow_connections``); this operator sees that they do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperator
from airflow.sdk.definitions.mappedoperator import MappedOperator

from airflow_provider_sinks.core.alter.backup import Holder, Mark, before_id
from airflow_provider_sinks.core.alter.leave import SECRET_PREFIX, mapped_problems
from airflow_provider_sinks.core.alter.steps import End
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.operators.alter.arguments import (
    AlterOrder,
    demand_valid,
    read_order,
)
from airflow_provider_sinks.operators.alter.end import error_of, to_data
from airflow_provider_sinks.operators.arguments import ordered
from airflow_provider_sinks.retry_policy import airflow_errors

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_sinks.clients.airflow_api import AirflowApi
    from airflow_provider_sinks.operators.alter.alteration import Alteration


class AlterConnectionRestartOperator(BaseOperator):
    """Change options of a connection, all of them or none, and see its sinks run on them.

    Before anything is changed the new options are checked, and each sink that uses the connection is checked
    with them. A sink that was running must run again within ``watch_timeout``, or the old options come back.
    A retry goes on where the try before it was ended, or undoes it.

    :param conn_id: the connection to alter, of a type that sinks use; one of type ``http`` is the registry
        of a sink, and never ``airflow_api_conn_id``. (templated)
    :param set: options and their new values. A secret is ``{"secret": "<name of a Variable>"}``, and the
        name begins with ``sinks_secret_``. (templated)
    :param drop: options to take away; each must be set. (templated)
    :param reset: options to put back to their defaults. (templated)
    :param statement: instead of the four: ``ALTER CONNECTION kafka_prod SET (client.id = 'a'), DROP (...),
        RESET (...) WITH (VALIDATE = false)``. (templated)
    :param validate: check the new options, and each sink with them, before the change. (templated)
    :param dry_run: check, and print the steps that a run would do, and change nothing. (templated)
    :param restart: wait until the sinks that were running run on the new options. (templated)
    :param rollback: put the old options back when one of them does not. (templated)
    :param keep_secrets: let stored secrets be sent to another server, or otherwise, than they were stored
        for. ``True`` or ``False`` in the DAG file; it is never rendered, and not taken from ``expand``.
    :param secret_prefix: how the names of the Variables begin that may be read as secrets, ``sinks_secret_``
        unless told otherwise. A literal too.
    :param allowed_files: the files of the worker that options may be made to name. A literal too.
    :param watch_timeout: how long they may take, as a timedelta or in seconds; the same again after a
        rollback.
    :param airflow_api_conn_id: the connection of type ``http`` to Airflow's REST API. (templated)
    """

    template_fields: Sequence[str] = (
        "conn_id",
        "set",
        "drop",
        "reset",
        "statement",
        "validate",
        "dry_run",
        "restart",
        "rollback",
        "airflow_api_conn_id",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {"set": "json", "statement": "sql"}
    ui_color = "#f7e6cf"

    def __init__(
        self,
        *,
        conn_id: str | None = None,
        set: Mapping[str, Any] | str | None = None,  # noqa: A002  the word of the statement
        drop: Collection[str] | str | None = None,
        reset: Collection[str] | str | None = None,
        statement: str | None = None,
        validate: bool | str = True,
        dry_run: bool | str = False,
        restart: bool | str = True,
        rollback: bool | str = True,
        keep_secrets: bool = False,
        secret_prefix: str = SECRET_PREFIX,
        allowed_files: Sequence[str] = (),
        watch_timeout: timedelta | float = timedelta(minutes=5),
        airflow_api_conn_id: str = "airflow_api_default",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.conn_id = conn_id
        self.set = dict(set) if isinstance(set, Mapping) else set
        self.drop = ordered(drop)
        self.reset = ordered(reset)
        self.statement = statement
        self.validate = validate
        self.dry_run = dry_run  # type: ignore[assignment]  # hides a method that Airflow does not call
        self.restart = restart
        self.rollback = rollback
        self.keep_secrets = keep_secrets
        self.secret_prefix = secret_prefix
        self.allowed_files = allowed_files
        self.watch_timeout = watch_timeout
        self.airflow_api_conn_id = airflow_api_conn_id
        demand_valid(self._arguments)

    def execute(self, context: Context) -> dict[str, Any]:
        """Do the steps, and return what was changed (names only) and what became of the sinks."""
        from airflow_provider_sinks.hooks.airflow_account import airflow_api

        with airflow_errors():
            self._demand_written(context)
            order = read_order(self._arguments)
            before_id(order.conn_id)
            with airflow_api(self.airflow_api_conn_id) as api:
                alteration = self._alteration(context, order, api)
                altered = alteration.plan() if order.is_dry_run else alteration.run()
                holder = self._state_of(api, alteration.mark) if altered.end is End.LOCKED else ""
            data = to_data(order, altered)
            self.log.info("connection %s: %s", order.conn_id, data["end"])
            if error := error_of(order, altered, alteration.mark, holder):
                # A task that fails returns nothing; its report is wanted then most of all.
                context["ti"].xcom_push(key="return_value", value=data)
                raise error
        return data

    def _alteration(self, context: Context, order: AlterOrder, api: AirflowApi) -> Alteration:
        from airflow_provider_sinks.clients.airflow_connections import ConnectionStore
        from airflow_provider_sinks.operators.alter.alteration import Alteration
        from airflow_provider_sinks.operators.alter.dependent_sinks import DependentSinks
        from airflow_provider_sinks.operators.alter.locked_connection import Alterer, LockedConnection

        instance = context["ti"]
        index = -1 if instance.map_index is None else instance.map_index
        holder = Holder(instance.dag_id, instance.run_id, instance.task_id, index)
        me = Alterer(holder, is_retry=instance.try_number > 1 and not order.is_dry_run)
        sinks = DependentSinks(api, order.conn_id, context["task_state_store"], self.log)
        locked = LockedConnection(order.conn_id, ConnectionStore(api), me)
        return Alteration(order, locked, sinks, self.log)

    @staticmethod
    def _state_of(api: AirflowApi, mark: Mark) -> str:
        from airflow_provider_sinks.clients.airflow_sinks import task_state

        return task_state(api, mark.holder) if mark.holder.dag_id else ""

    def _demand_written(self, context: Context) -> None:
        """Refuse a leave that ``expand`` brought: it is the author's own word, or nobody's.

        :raises ConfigurationError: it did.
        """
        written = context["dag"].get_task(self.task_id)
        if not isinstance(written, MappedOperator):
            return
        problems = [*mapped_problems(self._leave, written.partial_kwargs)]
        if problems:
            raise ConfigurationError(
                "AlterConnectionRestartOperator cannot take its arguments from expand", problems
            )

    @property
    def _leave(self) -> dict[str, Any]:
        return {
            "keep_secrets": self.keep_secrets,
            "secret_prefix": self.secret_prefix,
            "allowed_files": self.allowed_files,
        }

    @property
    def _arguments(self) -> dict[str, Any]:
        return {
            "conn_id": self.conn_id,
            "set": self.set,
            "drop": self.drop,
            "reset": self.reset,
            "statement": self.statement,
            "validate": self.validate,
            "dry_run": self.dry_run,
            "restart": self.restart,
            "rollback": self.rollback,
            "watch_timeout": self.watch_timeout,
            "airflow_api_conn_id": self.airflow_api_conn_id,
            **self._leave,
        }
