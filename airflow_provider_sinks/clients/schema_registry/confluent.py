"""How confluent-kafka's own client is made of the options of a connection."""

from __future__ import annotations

import ast
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sinks.clients.pem_files import PEM_FILES
from airflow_provider_sinks.clients.schema_registry.options import RegistryOptions
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.wording import one_line

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.error import SchemaRegistryError

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
_UNKNOWN = "Unknown Schema Registry Error: "
"""How the library begins the message of an answer that is no JSON object; its bytes follow, as a literal."""
_PACKAGES = 'pip install "airflow-provider-sinks[schema-registry]" where the driver runs, and on the worker'


def made(options: RegistryOptions) -> SchemaRegistryClient:
    """Return the client; it connects with its first question.

    :param options: with the text of PEM files in them.
    :raises ConfigurationError: the library is not whole, or cannot use the certificates.
    """
    with _files(options) as files:
        try:
            from confluent_kafka.schema_registry import SchemaRegistryClient

            from airflow_provider_sinks.clients.schema_registry.bounded_answers import bounded

            return bounded(
                SchemaRegistryClient({**_login(options), **files, **_PATIENCE, "url": options.options["url"]})
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


def said(error: SchemaRegistryError) -> str:
    """Return what a registry said about an error, on one line.

    Only what has the form of its API: code and message. An address may lead to any server, and what else one
    answers may be for nobody's eyes.
    """
    code, message = error.error_code, error.error_message
    if is_structured(error):
        return f"{one_line(message)} (error code {code})"
    length = _length(message)
    return "no error as a schema registry tells it" + (f", but {length} bytes" if length is not None else "")


def is_structured(error: SchemaRegistryError) -> bool:
    """Return whether an error has the form of a registry's API."""
    code = error.error_code
    is_code = isinstance(code, int) and not isinstance(code, bool) and code > 0
    return is_code and isinstance(error.error_message, str)


def _length(message: object) -> int | None:
    """Return how long the answer was of which the library made this message."""
    if not isinstance(message, str) or not message.startswith(_UNKNOWN):
        return None
    with suppress(ValueError, SyntaxError):
        return len(ast.literal_eval(message.removeprefix(_UNKNOWN)))
    return None


def lost(error: Exception) -> str:
    """Return why there was no answer; what came in its place is not shown."""
    from confluent_kafka.schema_registry.common._httpx_compat import httpx

    from airflow_provider_sinks.clients.schema_registry.bounded_answers import UnfitAnswerError

    if isinstance(error, UnfitAnswerError):
        return str(error)
    name = type(error).__name__
    return f"{name}: {error}" if isinstance(error, httpx.ConnectError | httpx.TimeoutException) else name


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
