"""The arguments of operators and sensors as pydantic models: all problems at once, each by its name.

An argument is judged when the DAG file is read, as far as it is literal, and once more when the task runs,
with templates rendered and outputs of other tasks in place. A form of Airflow's UI gives texts: where a form
may fill in an argument, a text stands for what it says.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
)

from airflow_provider_sinks.arguments import is_template, parse
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, nearest
from airflow_provider_sinks.core.spec.problems import UnfitError, UnfitPartsError, problems_of
from airflow_provider_sinks.core.spec.sink import SinkSpec

_FLAGS = {"true": True, "false": False, "": False}


class Arguments(BaseModel):
    """What an operator takes, as far as it is judged here."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    @field_validator("*", mode="wrap")
    @classmethod
    def _later(cls, value: Any, judge: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        is_rendered = bool(info.context)
        return value if not is_rendered and is_template(value) else judge(value)

    @classmethod
    def problems(cls, given: Mapping[str, Any]) -> list[Problem]:
        """Return everything that is wrong; what is still a template, or comes from another task, is not.

        :param given: by name.
        """
        found = cls._judged(given, is_rendered=False)
        return found if isinstance(found, list) else []

    @classmethod
    def read(
        cls,
        primary: str,
        given: Mapping[str, Any],
        others: Iterable[Problem] = (),
        *,
        is_rendered: bool = False,
    ) -> Self:
        """Return the arguments, rendered or literal.

        :param primary: what to say when something is wrong.
        :param others: what is wrong between the arguments.
        :param is_rendered: no template is left, so what looks like one is a text that somebody wrote.
        :raises ConfigurationError: with all problems.
        """
        found = cls._judged(given, is_rendered=is_rendered)
        problems = [*others, *(found if isinstance(found, list) else ())]
        if isinstance(found, list) or problems:
            raise ConfigurationError(primary, problems)
        return found

    @classmethod
    def _judged(cls, given: Mapping[str, Any], *, is_rendered: bool) -> Self | list[Problem]:
        try:
            return cls.model_validate(given, context={"is_rendered": True} if is_rendered else None)
        except ValidationError as error:
            return list(problems_of(error, cls))


def choice(value: object, names: Collection[str]) -> Any:
    """Return a name of a set of names.

    :raises UnfitError: it is none of them; with the nearest one.
    """
    if value not in names:
        raise UnfitError(f"is {value!r}", nearest(str(value), names) or f"one of {', '.join(names)}")
    return value


def _form_flag_or_none(value: object) -> bool:
    if isinstance(value, str) and not value.strip():
        raise UnfitError(f"is {value!r}", "True or False")
    return value is not None and flag_of_form(value)


def flag_of_form(value: object) -> bool:
    """Return a flag as a form or a template gives it.

    :raises UnfitError: it is neither true nor false.
    """
    known = value if isinstance(value, bool) else _FLAGS.get(str(value).strip().lower())
    if known is None:
        raise UnfitError(f"is {value!r}", "True or False")
    return known


def _sink(value: object) -> SinkSpec:
    try:
        return parse(value)
    except ConfigurationError as error:
        raise UnfitPartsError(error.problems) from None


def _sink_or_none(value: object) -> SinkSpec | None:
    return None if value is None else _sink(value)


def _accept(value: object) -> str | None:
    if not isinstance(value, str | None):
        raise UnfitError(f"is a {type(value).__name__}", "the code that a refusal printed, or None")
    return value


def _conn_id(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UnfitError(f"is {value!r}", "the id of an Airflow connection")
    return value


def _conn_id_or_none(value: object) -> str | None:
    return None if value is None else _conn_id(value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise UnfitError(f"is {value!r}", "True or False")
    return value


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise UnfitError(f"is {value!r}", "a number of seconds above 0")
    return value


def _seconds_or_timedelta(value: object) -> float:
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if value is None:
        return 0.0
    try:
        return float(_seconds(seconds))
    except UnfitError:
        raise UnfitError(f"is {value!r}", "a timedelta, or seconds, above 0") from None


def _mapping(value: Any) -> dict[str, Any]:
    if isinstance(value, str) and value.strip():
        try:
            value = json.loads(value)
        except ValueError:  # from None: the text may hold a secret
            raise UnfitError("is not JSON", '{"client.id": "sinks"}') from None
    if value and not isinstance(value, Mapping):
        raise UnfitError("must be a mapping of options to values")
    return {str(name): given for name, given in (value or {}).items()}


def _names(value: Any) -> list[str]:
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",") if name.strip()]
    if value and not isinstance(value, list | tuple | set | frozenset):
        raise UnfitError("must be a list of options")
    if wrong := [name for name in value or () if not isinstance(name, str)]:
        raise UnfitError(f"holds {wrong[0]!r}, which is no name")
    return list(ordered(value) or ())


def ordered(names: Any) -> Any:
    """Return a set as a sorted list, so that a DAG is the same every time; anything else as it is."""
    return sorted(names) if isinstance(names, set | frozenset) else names


SinkArgument = Annotated[SinkSpec, PlainValidator(_sink)]
SinkArgumentOrNone = Annotated[SinkSpec | None, PlainValidator(_sink_or_none)]
AcceptCode = Annotated[str | None, PlainValidator(_accept)]
ConnId = Annotated[str, PlainValidator(_conn_id)]
ConnIdOrNone = Annotated[str | None, PlainValidator(_conn_id_or_none)]
Flag = Annotated[bool, PlainValidator(_flag)]
FormFlag = Annotated[bool, PlainValidator(flag_of_form)]
FormFlagOrNone = Annotated[bool, PlainValidator(_form_flag_or_none)]
FormMapping = Annotated[dict[str, Any], PlainValidator(_mapping)]
FormNames = Annotated[list[str], PlainValidator(_names)]
Seconds = Annotated[float, PlainValidator(_seconds)]
Duration = Annotated[float, PlainValidator(_seconds_or_timedelta)]
"""A timedelta or seconds, in seconds; 0 for none."""
