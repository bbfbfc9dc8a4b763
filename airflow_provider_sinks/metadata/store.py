"""The state store of a sink's asset: what stands where in it, and writes that may fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from airflow.sdk import Asset, Context
    from airflow.sdk.types import Logger

KEY = "witness"
STATUS_KEY = "status"
HISTORY_KEY = "history"


class Store(Protocol):
    """The part of Airflow's asset state store that is used here."""

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value; raises when Airflow cannot say."""

    def set(self, key: str, value: Any) -> None:
        """Write a value."""


def store_of(context: Context, asset: Asset | None) -> Store | None:
    """Return the state store of a sink's asset, or ``None`` where Airflow gives the task none.

    That is so for a sink whose name is a template, and for a mapped task: Airflow learns its assets too late.

    :param asset: the asset of the sink.
    """
    if asset is None or "asset_state_store" not in context:
        return None
    try:
        return context["asset_state_store"][asset]
    except KeyError:
        return None


def attempt(log: Logger, sink: str, what: str, place: str, write: Callable[[], None]) -> bool:
    """Write something; a failure is a warning, for a sink does not stop because its memory is away.

    :param what: is written.
    :param place: where.
    :return: whether it was written.
    """
    try:
        write()
    except Exception as error:  # noqa: BLE001  whatever Airflow's client raises
        log.warning("the %s of sink %s was not written to the %s: %s", what, sink, place, error)
        return False
    return True
