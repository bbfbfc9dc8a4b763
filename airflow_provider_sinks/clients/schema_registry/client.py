"""A client for registries that speak Confluent's API: facts in plain types, errors in ours.

It is confluent-kafka's own, which tries one address after the other. Safe for threads.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_sinks.clients.schema_registry import confluent
from airflow_provider_sinks.clients.schema_registry.options import RegistryOptions
from airflow_provider_sinks.clients.schema_registry.schemas import (
    NewSchema,
    Reference,
    StoredSchema,
    references_of,
)
from airflow_provider_sinks.core.errors import (
    AuthenticationError,
    ConfigurationError,
    Problem,
    SinkError,
    UnavailableError,
)
from airflow_provider_sinks.core.schemas.languages import Referred
from airflow_provider_sinks.core.schemas.levels import Level

if TYPE_CHECKING:
    from confluent_kafka.schema_registry.error import SchemaRegistryError

T = TypeVar("T")

_REFERENCES_DEEPEST = 20
_REFERENCES_MOST = 200
_MOST_KINDS = 20
_MISSING, _CONFLICT, _NOT_A_SCHEMA = 404, 409, 422
_IDS = "/schemas/ids"


class UnresolvedError(ConfigurationError):
    """A schema that another one refers to is not registered."""


class RefusedQuestionError(ConfigurationError):
    """The registry speaks as one, and does not answer this question; another one it may."""


class SchemaRegistry:
    """One registry.

    :param options: with the text of PEM files in them.
    :raises ConfigurationError: the client library is not whole, or cannot use the certificates.
    """

    def __init__(self, options: RegistryOptions) -> None:
        self.options = options
        self._client = confluent.made(options)

    @property
    def service(self) -> str:
        """Who is asked, for messages."""
        return f"the schema registry at {self.options.urls[0]}"

    def kinds(self) -> tuple[str, ...]:
        """Return what kinds of schemas it keeps, such as ``AVRO``."""
        return self._ask(
            "say what kinds of schemas it keeps", lambda: _kinds(self._client.get_schema_types())
        )

    def by_id(self, schema_id: int) -> StoredSchema | None:
        """Return a schema by its id; ``None`` where the registry has none of it.

        :raises RefusedQuestionError: the registry says something else about this id.
        """
        what = f"give the schema with id {schema_id}"
        found = self._ask_or_none(what, lambda: self._client._rest_client.get(f"{_IDS[1:]}/{schema_id}"))  # noqa: SLF001  get_schema keeps what it got, references unread
        return None if found is None else self._stored({**found, "id": schema_id})

    def version(self, subject: str, version: int | None = None) -> StoredSchema | None:
        """Return a version of a subject, the newest unless named; ``None`` where it has none."""
        named = "the newest version" if version is None else f"version {version}"
        path = f"subjects/{_quoted(subject)}/versions/{'latest' if version is None else version}"
        found = self._ask_or_none(
            f'give {named} of subject "{subject}"',
            lambda: self._client._rest_client.get(path),  # noqa: SLF001  the client keeps the newest for good
        )
        return None if found is None else self._stored(found)

    def versions(self, subject: str) -> tuple[int, ...]:
        """Return the versions of a subject; none where there is no such subject."""
        found = self._ask_or_none(
            f'list the versions of subject "{subject}"', lambda: self._client.get_versions(subject)
        )
        return tuple(found or ())

    def find(self, subject: str, schema: NewSchema) -> int | None:
        """Return the id of exactly this schema under a subject; ``None`` where it is not there."""
        found = self._ask_or_none(
            f'look for a schema under subject "{subject}"',
            lambda: self._client._rest_client.post(f"subjects/{_quoted(subject)}", body=schema.to_mapping()),  # noqa: SLF001  as above
        )
        return None if found is None else int(found["id"])

    def level(self, subject: str) -> Level:
        """Return what the next schema of a subject must be, by its own setting or the registry's.

        Of a subject without a setting Apicurio says ``NONE``, unless it is asked for the registry's.
        """
        path = f"config/{_quoted(subject)}?defaultToGlobal=true"
        found = self._ask_or_none(
            f'say the compatibility of subject "{subject}"',
            lambda: _level(self._client._rest_client.get(path)),  # noqa: SLF001  the client cannot ask so
        )
        if found is not None:
            return found
        return self._ask("say its compatibility", lambda: _level(self._client._rest_client.get("config")))  # noqa: SLF001  as above

    def takes(self, subject: str, schema: NewSchema) -> bool:
        """Return whether a schema may follow the others of a subject. Registers nothing."""
        path = f"compatibility/subjects/{_quoted(subject)}/versions/latest"
        found = self._ask_or_none(
            f'compare a schema with subject "{subject}"',
            lambda: self._client._rest_client.post(f"{path}?verbose=true", body=schema.to_mapping()),  # noqa: SLF001  as above
        )
        return found is None or bool(found["is_compatible"])

    def register(self, subject: str, schema: NewSchema) -> int:
        """Put a schema under a subject and return its id. Idempotent: one that is there stays as it is.

        :raises ConfigurationError: the registry does not take it.
        """
        path = f"subjects/{_quoted(subject)}/versions"
        found = self._ask(
            f'take the schema under subject "{subject}"',
            lambda: self._client._rest_client.post(path, body=schema.to_mapping()),  # noqa: SLF001  as above
        )
        return int(found["id"])

    def referred(self, references: Sequence[Reference]) -> tuple[Referred, ...]:
        """Return the schemas that are referred to, what they need themselves first.

        :raises UnresolvedError: one is not there.
        """
        texts: dict[Reference, str] = {}
        self._collect(references, texts, 0)
        return tuple((one.name, text) for one, text in texts.items())

    def close(self) -> None:
        """End the client."""
        self._client.close()

    def _collect(self, references: Sequence[Reference], texts: dict[Reference, str], depth: int) -> None:
        for one in references:
            if one in texts or depth > _REFERENCES_DEEPEST:
                continue
            if len(texts) + depth >= _REFERENCES_MOST:
                problem = Problem(one.name, f"is behind more than {_REFERENCES_MOST} others")
                raise UnresolvedError("a schema refers to too many others", [problem]).of(
                    self.options.conn_id
                )
            path = f"subjects/{_quoted(one.subject)}/versions/{one.version}"
            found = self._ask_or_none(
                f'give version {one.version} of subject "{one.subject}"',
                lambda path=path: self._client._rest_client.get(path),  # type: ignore[misc]  # noqa: SLF001  as above
            )
            if found is None:
                problem = Problem(one.name, f'subject "{one.subject}" has no version {one.version}')
                raise UnresolvedError("a schema that is referred to is not registered", [problem]).of(
                    self.options.conn_id
                )
            self._collect(references_of(found), texts, depth + 1)
            texts[one] = found["schema"]

    def _stored(self, found: Mapping[str, Any]) -> StoredSchema:
        """Return a schema with what it refers to, as far as that is there: another one may do without it."""
        stored = StoredSchema.from_mapping(found)
        try:
            return replace(stored, referred=self.referred(stored.references))
        except UnresolvedError as error:
            return replace(stored, missing="; ".join(map(str, error.problems)))

    def _ask_or_none(self, what: str, question: Callable[[], T]) -> T | None:
        """Return the answer; ``None`` where it is that there is no such thing."""
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        def ask() -> T | None:
            try:
                return question()
            except SchemaRegistryError as error:
                if error.http_status_code == _MISSING and str(error.error_code).startswith(str(_MISSING)):
                    return None
                raise

        return self._ask(what, ask)

    def _ask(self, what: str, question: Callable[[], T]) -> T:
        from confluent_kafka.schema_registry.common._httpx_compat import httpx
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        begun = time.monotonic()
        try:
            return question()
        except SchemaRegistryError as error:
            raise self._said(error, what) from None  # from None: it may hold what was sent
        except httpx.TransportError as error:
            seconds = time.monotonic() - begun
            raise UnavailableError(
                f"{self.service} could not {what}",
                f"No answer after {seconds:.1f} s: {confluent.lost(error)}",
                f'Check the address in connection "{self.options.conn_id}", and that the registry is up.',
            ).of(self.options.conn_id) from None
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(
                f"{self.service} answers, and not as a schema registry does",
                [Problem("host", f"what came was not understood: {type(error).__name__}")],
                "Name the address that its API begins at, such as https://registry:8081.",
            ).of(self.options.conn_id) from None

    def _said(self, error: SchemaRegistryError, what: str) -> SinkError:
        status, said = error.http_status_code, confluent.said(error)
        primary = f"{self.service} did not {what}"
        conn_id = self.options.conn_id
        if status in (401, 403):
            hint = f'Correct user and password, or the token, of connection "{conn_id}", or its rights.'
            return AuthenticationError(primary, f"HTTP {status}: {said}", hint).of(conn_id)
        if status in (_CONFLICT, _NOT_A_SCHEMA):
            word = "incompatible" if status == _CONFLICT else "no schema to it"
            return RefusedQuestionError(primary, [Problem("", f"it is {word}: {said}")])
        if status >= 500 or status in (408, 429):
            return UnavailableError(primary, f"HTTP {status}: {said}", "Look at the registry.").of(conn_id)
        problem = Problem("host", f"HTTP {status}: {said}")
        hint = "Name the address that its API begins at, such as https://registry:8081."
        kind = RefusedQuestionError if confluent.is_structured(error) else ConfigurationError
        return kind(primary, [problem], hint).of(conn_id)


def _kinds(found: Any) -> tuple[str, ...]:
    """Take names only: a server of whoever wrote the address may answer anything.

    :raises ValueError: something else came.
    """
    if not isinstance(found, list) or len(found) > _MOST_KINDS:
        raise ValueError("no list of kinds")
    if not all(isinstance(kind, str) and re.fullmatch(r"[A-Z][A-Z_]{0,31}", kind) for kind in found):
        raise ValueError("a kind that is no name")
    return tuple(found)


def _level(found: Any) -> Level:
    """Read a level.

    :raises ValueError: something else came.
    """
    return Level(str(found.get("compatibilityLevel") if isinstance(found, dict) else found).upper())


def _quoted(subject: str) -> str:
    from urllib.parse import quote

    return quote(subject, safe="")
