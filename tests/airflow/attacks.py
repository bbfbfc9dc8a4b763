"""What attacks on stored secrets share: a server of the attacker, and a Variable of somebody else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from tests.listening_broker import Listener

if TYPE_CHECKING:
    from airflow_provider_sinks.clients.airflow_api import AirflowApi

FOREIGN, FOREIGN_VALUE = "foreign", "the value of a foreign Variable"


@contextmanager
def unheard(server: AbstractContextManager[Listener]) -> Iterator[Listener]:
    """Let a server of the attacker's run, which hears nothing, whatever the body does."""
    with server as listening:
        yield listening
        assert not listening.visits
        assert not listening.logins


@contextmanager
def foreign_variable(api: AirflowApi) -> Iterator[None]:
    """Have the Variable while the body runs."""
    api.call("POST", "variables", {"key": FOREIGN, "value": FOREIGN_VALUE})
    yield
    api.call("DELETE", f"variables/{FOREIGN}")
