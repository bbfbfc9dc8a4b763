"""How confluent-kafka's own client is made of the options of a connection."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sinks.clients.schema_registry.options import PEM_FILES, RegistryOptions
from airflow_provider_sinks.core.errors import ConfigurationError, Problem

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient

ANSWER_SECONDS = 5.0
"""How long one address may take to answer."""
_TRIES_MORE = 1
_PAUSE_MILLISECONDS = 200
_PATIENCE = {
    "timeout": ANSWER_SECONDS,
    "max.retries": _TRIES_MORE,
    "retries.wait.ms": _PAUSE_MILLISECONDS,
    "retries.max.wait.ms": _PAUSE_MILLISECONDS,
}
_PACKAGES = 'pip install "airflow-provider-sinks[schema-registry]" where the driver runs, and on the worker'


def made(options: RegistryOptions) -> SchemaRegistryClient:
    """Return the client; it connects with its first question.

    :param options: with the text of PEM files in them.
    :raises ConfigurationError: the library is not whole, or cannot use the certificates.
    """
    with _files(options) as files:
        try:
            from confluent_kafka.schema_registry import SchemaRegistryClient

            return SchemaRegistryClient(
                {**_login(options), **files, **_PATIENCE, "url": options.options["url"]}
            )
        except ImportError as error:
            problem = Problem("registry", f"{error.name or error} is not installed")
            raise ConfigurationError(
                "there is no client for schema registries", [problem], _PACKAGES
            ) from error
        except (ValueError, OSError) as error:  # ssl's errors are OSErrors
            problem = Problem("extra", f"cannot be used: {error}")
            title = f'connection "{options.conn_id}" is not valid for a schema registry'
            raise ConfigurationError(title, [problem]).of(options.conn_id) from None


def _login(options: RegistryOptions) -> dict[str, str]:
    password = options.options.get("password")
    if password is None:
        return {}
    if login := options.options.get("login"):
        return {"basic.auth.user.info": f"{login}:{password}"}
    return {
        "bearer.auth.credentials.source": "STATIC_TOKEN",
        "bearer.auth.token": password,
        "bearer.auth.logical.cluster": "",
    }


@contextmanager
def _files(options: RegistryOptions) -> Iterator[dict[str, str]]:
    """Give the certificates as files, which is how the library takes them, for as long as it reads them."""
    with tempfile.TemporaryDirectory(prefix="sinks-registry-") as folder:
        files = {}
        for located, inline in PEM_FILES.items():
            if inline in options.options:
                path = Path(folder, inline)
                path.touch(mode=0o600)
                path.write_text(options.options[inline])
                files[located] = str(path)
        yield files
