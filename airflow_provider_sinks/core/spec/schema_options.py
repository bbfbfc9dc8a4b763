"""How a spec names the schema of a value or a key: written down, in a file, or as a registry has it.

A file is read where a sink is declared, by the code and the YAML of its author, and nowhere else: what comes
by a template, an XCom or a store may be anybody's, and would have any file of a worker read, or found out.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictStr,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
)

from airflow_provider_sinks.core.errors import nearest
from airflow_provider_sinks.core.schemas.protobuf_types import stands_alone
from airflow_provider_sinks.core.schemas.subjects import STRATEGIES, check_naming
from airflow_provider_sinks.core.spec.fields import Text
from airflow_provider_sinks.core.spec.parts import Format
from airflow_provider_sinks.core.spec.problems import UnfitError, UnfitPartsError, problems_of

READS_FILES = "reads_files"
"""In the context of a validation: the sink is being declared by its author, so files may be read."""

_LARGEST_FILE_BYTES = 1024 * 1024
_REFERENCE = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "subject": {"type": "string"},
        "version": {"type": "integer", "minimum": 1},
    },
    "required": ["name", "subject", "version"],
    "additionalProperties": False,
}
_CHOICE = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {
                "inline": {"type": "string"},
                "file": {
                    "type": "string",
                    "description": "an absolute path, read where the sink is declared",
                },
                "subject": {"type": "string"},
                "version": {"type": "integer", "minimum": 1, "description": "the newest one, unless given"},
                "message": {
                    "type": "string",
                    "description": "of Protobuf: the full name of a message; the first one, unless given",
                },
                "references": {"type": "array", "items": _REFERENCE},
            },
            "additionalProperties": False,
        },
    ]
}


class SchemaReference(BaseModel):
    """A registered schema whose types another schema names."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: Text
    subject: Text
    version: Annotated[int, Field(strict=True, ge=1)]


class DeclaredSchema(BaseModel):
    """A schema by its text, with what the text refers to, or by its subject and version.

    :param message: of Protobuf, which message of the file is meant.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    inline: Text | None = None
    subject: Text | None = None
    version: Annotated[int, Field(strict=True, ge=1)] | None = None
    message: Text | None = None
    references: tuple[SchemaReference, ...] = ()

    def is_read_here(self, format_: Format) -> bool:
        """Whether what it says is known where a sink is declared.

        Protobuf is not: its compiler takes a third of a second, and DAG files are parsed again and again.
        """
        is_whole = self.inline is not None and not self.references
        return is_whole and (format_ is not Format.PROTOBUF or stands_alone(str(self.inline)))


def declared(choice: str | DeclaredSchema | None) -> DeclaredSchema | None:
    """Return a schema as it was chosen; text alone is the schema."""
    return DeclaredSchema(inline=choice) if isinstance(choice, str) else choice


def _choice(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, str):
        if not value.strip():
            raise UnfitError("is empty", "write something, or leave it out")
        return value
    if value is None or isinstance(value, DeclaredSchema):
        return value
    if not isinstance(value, Mapping):
        raise UnfitError("is no schema", "text, {file: /path}, or {subject: name, version: 1}")
    try:
        found = DeclaredSchema.model_validate(_with_file_read(value, may_read=_may_read(info)))
    except ValidationError as error:
        raise UnfitPartsError(problems_of(error, DeclaredSchema)) from None
    if (found.inline is None) == (found.subject is None):
        raise UnfitError("names no schema, or two of them", "one of inline, file and subject")
    if found.version is not None and found.subject is None:
        raise UnfitError("has a version of no subject", "write subject and version")
    if found.references and found.inline is None:
        raise UnfitError("has references beside a subject", "the registry knows what that refers to")
    return found


def _may_read(info: ValidationInfo) -> bool:
    return bool((info.context or {}).get(READS_FILES))


def _with_file_read(value: Mapping[str, Any], *, may_read: bool) -> dict[str, Any]:
    """Read a file now: no other machine needs it, and a changed file is a changed sink."""
    given = dict(value)
    path = given.pop("file", None)
    if path is None:
        return given
    if "inline" in given or "subject" in given:
        raise UnfitError("names no schema, or two of them", "one of inline, file and subject")
    if not may_read:
        what = "names a file, which is read only where a sink is declared"
        raise UnfitError(what, "declare it in the DAG file by Sink(...) or sink_dag(...), or in YAML")
    if not isinstance(path, str) or not path.startswith("/"):
        raise UnfitError(f"file {path!r} is no absolute path", "write it from the root: /folder/order.avsc")
    try:
        if Path(path).stat().st_size > _LARGEST_FILE_BYTES:
            raise UnfitError(f"file {path} is larger than 1 MiB")
        given["inline"] = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnfitError(f"file {path} cannot be read: {type(error).__name__}") from None
    return given


class AutoRegister(enum.StrEnum):
    """Whether a start registers a schema that its subject has not yet."""

    TRUE = "true"
    """Wherever the registry takes it."""
    FALSE = "false"
    """Never: somebody else has registered it."""
    CHECK = "check"
    """Where it is backward compatible by our own judgement too, whatever the subject's level."""


def _auto_register(value: Any) -> Any:
    if isinstance(value, bool):
        return AutoRegister.TRUE if value else AutoRegister.FALSE
    if isinstance(value, str) and value not in list(AutoRegister):
        raise UnfitError(f"{value!r} is none of true, false, check", nearest(value, list(AutoRegister)))
    return value


SchemaChoice = Annotated[StrictStr | DeclaredSchema, BeforeValidator(_choice), WithJsonSchema(_CHOICE)]
Naming = Annotated[
    StrictStr,
    AfterValidator(check_naming),
    WithJsonSchema(
        {
            "type": "string",
            "description": f"{', '.join(STRATEGIES)}, or a template such as {{topic}}-{{part}}",
        }
    ),
]
Registering = Annotated[
    AutoRegister, BeforeValidator(_auto_register), WithJsonSchema({"enum": [True, False, "check"]})
]
