"""Links on the page of a task that runs a sink: Spark's own page, its history, and the sink's status.

Airflow shows what is stored under a link's XCom key. The operator stores each one as soon as it is known,
while the task runs; Airflow asks once more at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from airflow.providers.common.compat.sdk import BaseOperatorLink, conf

from airflow_provider_sinks.core.launch.status import SinkStatus

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context
    from airflow.sdk.types import TaskInstanceKey


class Linked(Protocol):
    """An operator with links.

    :param link_urls: the addresses by XCom key, as far as they are known.
    :param conf: the Spark settings.
    """

    link_urls: dict[str, str]
    conf: dict[Any, Any] | None


class _SinkLink(BaseOperatorLink):
    """A link whose address the running operator knows."""

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Return the address, or an empty text while it is not known. Called by Airflow at the task's end."""
        del ti_key
        known: dict[str, str] = getattr(operator, "link_urls", {})
        return known.get(self.xcom_key, "")


class SparkUILink(_SinkLink):
    """The page of the running driver; gone when it has ended."""

    name = "Spark UI"


class SparkHistoryLink(_SinkLink):
    """The page of the application on Spark's history server, where a connection or setting names one."""

    name = "Spark history"


class SinkStatusLink(_SinkLink):
    """The sink's asset, with its status in the asset's state store."""

    name = "Sink status"


class Links:
    """The links of one running task.

    :param operator: keeps the addresses for Airflow's question at the end.
    :param history_server: the address of Spark's history server, or empty: then the Spark setting
        ``spark.yarn.historyServer.address`` counts, if there is one.
    """

    def __init__(self, operator: Linked, context: Context, history_server: str) -> None:
        self._operator = operator
        self._instance = context["ti"]
        self._history_server = history_server or _server_in(operator.conf or {})

    def follow(self, status: SinkStatus) -> None:
        """Store the links that a status brings, each when it changes. Called from a thread of its own."""
        self.store(SparkUILink, status.spark_ui_url)
        self.store(SparkHistoryLink, history_url(self._history_server, status.spark_app_id))

    def store(self, link: type[_SinkLink], url: str) -> None:
        """Store the address of a link; nothing if it is not known, or is stored already."""
        key = link().xcom_key
        if url and self._operator.link_urls.get(key) != url:
            self._instance.xcom_push(key=key, value=url)
            self._operator.link_urls[key] = url


def _server_in(settings: Mapping[Any, Any]) -> str:
    """Return the address in Spark's setting, which has no scheme."""
    address = str(settings.get("spark.yarn.historyServer.address") or "")
    return f"http://{address}" if address and "://" not in address else address


def asset_url(sink: str) -> str:
    """Return the page of Airflow's UI that shows the asset of a sink.

    A task does not know the number under which Airflow keeps an asset, so the page is the list with its name.

    :param sink: the sink's name.
    """
    base = (conf.get("api", "base_url", fallback="") or "").rstrip("/")
    return f"{base}/assets?name_pattern={quote(f'sink:{sink}', safe='')}"


def history_url(server: str, application_id: str) -> str:
    """Return the page of an application on a history server; empty where one of the two is not known.

    :param server: the address of the history server, such as ``http://history:18080``.
    :param application_id: Spark's id of the application.
    """
    return f"{server.rstrip('/')}/history/{application_id}/jobs/" if server and application_id else ""
