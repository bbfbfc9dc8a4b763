"""The storage of a connection: what others name elsewhere is neither read nor written.

Whoever keeps the catalog names metadata, manifests and data files. A bucket of another name is reached by
the address and the keys of the connection alone. A file of this machine, or a server of Hadoop's, needs none;
nor would a bucket of another cloud, which the machine's own login may open.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from pyiceberg.io import WAREHOUSE
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.typedef import EMPTY_DICT, Properties

from airflow_provider_sinks.connectors.iceberg.option_names import LOGINS, STORAGE
from airflow_provider_sinks.core.errors import ConfigurationError, Problem

_ON_SERVERS = frozenset({"hdfs", "viewfs"})


class BoundFileIO(PyArrowFileIO):
    """PyIceberg's storage by Arrow, for places that its connection leads to.

    :param properties: the options of the storage, and the ``warehouse``; may hold secrets.
    """

    @staticmethod
    def parse_location(location: str, properties: Properties = EMPTY_DICT) -> tuple[str, str, str]:
        """Return scheme, server and path; PyIceberg comes here with each location.

        :raises ConfigurationError: the connection does not lead there.
        """
        place = PyArrowFileIO.parse_location(location)
        warehouse = properties.get(WAREHOUSE)
        if not _is_led_to(place, PyArrowFileIO.parse_location(warehouse) if warehouse else None):
            hint = "If it is right, let the connection's warehouse lead there."
            raise _elsewhere(location, "is not where the connection's warehouse is", hint)
        if _is_of_another_cloud(place[0], properties):
            hint = "If it is right, give the connection a login for that storage too."
            raise _elsewhere(location, "is not in the cloud that the connection logs in to", hint)
        return place


def storage_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Return what the storage needs of a catalog's properties: nothing of the catalog's own login."""
    return {name: value for name, value in properties.items() if name in STORAGE or name == WAREHOUSE}


def _elsewhere(location: str, why: str, hint: str) -> ConfigurationError:
    return ConfigurationError(
        "a table leads to a place that its connection does not", [Problem(location, why)], hint
    )


def _is_of_another_cloud(scheme: str, properties: Properties) -> bool:
    """Return whether keys are there, and none for this cloud: it would be asked with the machine's login."""
    given = frozenset(properties)
    has_keys = {one for one, logins in LOGINS.items() if any(login <= given for login in logins)}
    return scheme in LOGINS and bool(has_keys) and scheme not in has_keys


def _is_led_to(place: tuple[str, str, str], warehouse: tuple[str, str, str] | None) -> bool:
    """Return whether a connection with this warehouse leads to a place."""
    scheme, server, path = place
    if scheme == "file":
        return warehouse is not None and warehouse[0] == scheme and _is_below(path, warehouse[2])
    if scheme in _ON_SERVERS:
        return warehouse is not None and warehouse[0] == scheme and server in ("", warehouse[1])
    return True


def _is_below(path: str, folder: str) -> bool:
    """Whether a file lies below a folder, wherever links lead to."""
    real, root = os.path.realpath(path), os.path.realpath(folder)
    return real == root or real.startswith(f"{root.rstrip(os.sep)}{os.sep}")
