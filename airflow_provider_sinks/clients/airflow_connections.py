"""Connections in Airflow's database, by its REST API: the only way to change them from a task.

Answers show secrets as ``***``; what is sent holds them. Airflow quotes what it was sent when it does not
take it, so its words are not passed on as they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_sinks.clients.airflow_api import AirflowApi, ApiAnswerError
from airflow_provider_sinks.core.connection.fields import ConnectionFields, read_extra
from airflow_provider_sinks.core.errors import ConfigurationError

_NAMES = ("conn_type", "host", "port", "login", "password", "schema", "extra")


@dataclass(frozen=True)
class StoredRow:
    """A connection as the API shows it, with ``***`` in the places of secrets."""

    fields: ConnectionFields
    description: str


class ConnectionStore:
    """The connections of one Airflow.

    :param api: as whom it is asked: a user who may create, edit and delete connections.
    """

    def __init__(self, api: AirflowApi) -> None:
        self._api = api

    def find(self, conn_id: str) -> StoredRow | None:
        """Return a connection of Airflow's database; ``None`` when there is none of that id in it."""
        found = self._api.find(f"connections/{conn_id}")
        if found is None:
            return None
        fields = ConnectionFields(conn_id, **{name: found[name] for name in _NAMES})
        return StoredRow(fields, found["description"] or "")

    def create(self, fields: ConnectionFields, description: str) -> bool:
        """Make a connection; return whether it was made: false when there is one of that id already."""
        try:
            body = {**_body(fields), "description": description}
            _unquoted(fields.conn_id, lambda: self._api.call("POST", "connections", body))
        except ApiAnswerError as error:
            if error.is_conflict:
                return False
            raise
        return True

    def change(self, fields: ConnectionFields, columns: Iterable[str]) -> None:
        """Change some columns of a connection, in one request: all of them or none.

        Absent from a request means untouched, so a column that is to be empty is sent as null.

        :param columns: such as ``host`` and ``extra``, which is replaced as a whole.
        """
        whole = _body(fields)
        names = list(columns)
        body = {name: whole[name] for name in ("connection_id", "conn_type", *names)}
        self._patch(fields.conn_id, body, names)

    def describe(self, fields: ConnectionFields, description: str) -> None:
        """Change the description of a connection."""
        body = {"connection_id": fields.conn_id, "conn_type": fields.conn_type, "description": description}
        self._patch(fields.conn_id, body, ["description"])

    def delete(self, conn_id: str) -> None:
        """Delete a connection; one that is gone already is no error."""
        try:
            self._api.call("DELETE", f"connections/{conn_id}")
        except ApiAnswerError as error:
            if not error.is_missing:
                raise

    def _patch(self, conn_id: str, body: Mapping[str, Any], mask: list[str]) -> None:
        path = f"connections/{conn_id}"
        _unquoted(conn_id, lambda: self._api.call("PATCH", path, body, update_mask=mask))


def _unquoted(conn_id: str, request: Callable[[], object]) -> None:
    """Make a request, and say that Airflow did not take it without its answer, which quotes the request."""
    try:
        request()
    except ApiAnswerError as error:
        if error.is_conflict:
            raise
        why = "it is not in Airflow's database" if error.is_missing else f"HTTP {error.status}"
    else:
        return
    # Outside of the handler, so that no traceback shows the answer as its context.
    raise ConfigurationError(f'Airflow did not take the change of connection "{conn_id}": {why}')


def _body(fields: ConnectionFields) -> dict[str, Any]:
    return {
        "connection_id": fields.conn_id,
        "conn_type": fields.conn_type,
        "host": fields.host,
        "port": fields.port,
        "login": fields.login,
        "password": fields.password,
        "schema": fields.schema,
        "extra": json.dumps(dict(read_extra(fields.conn_id, fields.extra))),
    }
