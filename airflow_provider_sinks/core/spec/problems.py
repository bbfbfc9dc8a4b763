"""Turns pydantic's errors into ours: where, what, and the nearest name that would have been right."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from airflow_provider_sinks.core.errors import ConfigurationError, Problem, nearest
from airflow_provider_sinks.core.evolution import OPTION
from airflow_provider_sinks.core.spec.kinds import load, points

ROLES = {"source": "target", "target": "source"}
_OF_TABLES = frozenset({OPTION})
"""Options that only some targets have; a sink's class says what does the same for it (``instead``)."""


class UnfitError(ValueError):
    """What our validators raise: a value that does not fit, and what would."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.hint = hint


class UnfitPartsError(ValueError):
    """What our validators raise of a value with parts: everything that is wrong inside it.

    :param problems: each is named after the value once it is told.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(map(str, self.problems)))

    def under(self, where: str, between: str = ": ") -> tuple[Problem, ...]:
        """Return the problems by the name of the value.

        :param where: what people call the value.
        :param between: what stands between it and the place inside it.
        """
        return tuple(
            replace(one, where=f"{where}{between}{one.where}" if one.where else where)
            for one in self.problems
        )


def problems_of(error: ValidationError, model: type[BaseModel]) -> tuple[Problem, ...]:
    """Translate all errors, in the order of the input."""
    found = error.errors(include_url=False)
    misspelt = {
        (*details["loc"][:-1], near)
        for details in found
        if details["type"] == "extra_forbidden"
        for near in _near_names(details["loc"], model)
    }
    return tuple(
        problem
        for details in found
        if details["type"] != "missing" or details["loc"] not in misspelt
        for problem in _problems(details, model)
    )


def place(path: tuple[int | str, ...]) -> str:
    """Write a path as a user would: ``target.kafka.key[0]``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if step != "[key]" else ""
    return text.lstrip(".")


def _problems(details: Any, model: type[BaseModel]) -> Iterator[Problem]:
    cause = details.get("ctx", {}).get("error")
    if not isinstance(cause, UnfitPartsError):
        yield _problem(details, model)
        return
    value = place(details["loc"])
    for problem in cause.problems:
        where = value if problem.where in ("", value) else f"{value}: {problem.where}"
        yield replace(problem, where=where)


def _problem(details: Any, model: type[BaseModel]) -> Problem:
    path, kind, context = details["loc"], details["type"], details.get("ctx", {})
    where = place(path)
    if kind == "extra_forbidden":
        return Problem(where, "is not known", _better_name(path, model))
    if kind == "missing":
        return Problem(where, "is missing")
    if kind == "value_error":
        cause = context["error"]
        return Problem(where, str(cause), getattr(cause, "hint", ""))
    if kind in ("enum", "literal_error"):
        return Problem(where, *_choice(details["input"], context["expected"]))
    return Problem(where, _MESSAGES.get(kind, _as_pydantic_says)(details))


def _choice(given: Any, expected: str) -> tuple[str, str]:
    names = expected.replace("'", "").replace(" or ", ", ").split(", ")
    return f"{given!r} is none of {', '.join(names)}", nearest(str(given), names)


def _must_be(kind: str) -> Callable[[Any], str]:
    return lambda details: f"must be {kind}, not {_described(details['input'])}"


def _as_pydantic_says(details: Any) -> str:
    message = str(details["msg"])
    return message[:1].lower() + message[1:]


_MESSAGES: Mapping[str, Callable[[Any], str]] = {
    "string_type": _must_be("text"),
    "int_type": _must_be("a whole number"),
    "int_from_float": _must_be("a whole number"),
    "bool_type": _must_be("true or false"),
    "dict_type": _must_be("a mapping"),
    "model_type": _must_be("a mapping"),
    "mapping_type": _must_be("a mapping"),
    "model_attributes_type": _must_be("a mapping"),
    "list_type": _must_be("a list"),
    "tuple_type": _must_be("a list"),
    "too_short": lambda _: "is empty: name something, or leave it out",
    "invalid_key": lambda _: "the key must be text",
    "greater_than_equal": lambda details: f"{details['input']} is less than {details['ctx']['ge']}",
    "less_than_equal": lambda details: f"{details['input']} is more than {details['ctx']['le']}",
}


def _described(value: Any) -> str:
    names = {str: "text", bool: "true or false", int: "a number", float: "a number with a fraction"}
    if value is None:
        return "empty"
    if isinstance(value, Mapping):
        return "a mapping"
    return names.get(type(value), "a list" if isinstance(value, list | tuple) else type(value).__name__)


def _near_names(path: tuple[int | str, ...], model: type[BaseModel]) -> list[str]:
    return difflib.get_close_matches(str(path[-1]), list(_names_at(model, path[:-1])), n=1)


def _better_name(path: tuple[int | str, ...], model: type[BaseModel]) -> str:
    """Propose a name: the nearest one that fits there, or say where the name would fit."""
    name = str(path[-1])
    own = list(_names_at(model, path[:-1]))
    other = ROLES.get(str(path[0]))
    if other and name in _names_at(model, (other, *path[1:-1])):
        near = nearest(name, own)
        return f"it belongs to a {other}" + (f"; {near}" if near else "")
    if name in _OF_TABLES:
        instead = getattr(model, "instead", {}).get(name)
        having = f"a table has it: {', '.join(_having(name))}"
        return f"{having}; {instead}" if instead else having
    return nearest(name, own) or ("one of " + ", ".join(own) if own else "")


def _having(name: str) -> Iterator[str]:
    """Return the kinds of targets that have an option."""
    for kind in points():
        with suppress(ConfigurationError):  # said where a sink names the target that cannot be loaded
            if name in _names_at(load(kind).sink, ("target", kind)):
                yield kind


def _names_at(model: type[BaseModel], path: tuple[int | str, ...]) -> Iterator[str]:
    current: type[BaseModel] | None = model
    for step in path:
        if current is None:
            return
        fields = {field.alias or name: field for name, field in current.model_fields.items()}
        if step in fields:
            current = _model_in(fields[str(step)].annotation)
    for name, field in current.model_fields.items() if current else ():
        yield field.alias or name


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_model_in(part) for part in get_args(annotation))
    return next((model for model in found if model is not None), None)
