"""What the operators of ``sink_life`` take, each argument with its rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import PlainValidator

from airflow_provider_sinks.core.connection.airflow_account import CONN_ID
from airflow_provider_sinks.core.lifecycle.new_generation import Output
from airflow_provider_sinks.core.spec.problems import UnfitError
from airflow_provider_sinks.operators.arguments import Arguments, FormFlag, choice

_OUTPUTS = [output.value for output in Output]


def name_of(sink: object) -> str:
    """Return the name of a sink that was given by name, or as a sink."""
    name = sink.get("name") if isinstance(sink, Mapping) else sink
    return name.strip() if isinstance(name, str) else ""


def _sink_name(value: object) -> str:
    if not (name := name_of(value)):
        raise UnfitError(f"is {value!r}", "the name of a sink, or the sink")
    return name


def _filled(value: object) -> object:
    if not value:
        raise UnfitError("is empty", "the id of an Airflow connection")
    return value


def _output(value: object) -> Any:
    return choice(value, _OUTPUTS)


def _topics(value: object) -> object:
    if isinstance(value, str):
        raise UnfitError(f"is the text {value!r}", "a list of names")
    return value


class VerbArguments(Arguments):
    """What each verb takes."""

    sink: Annotated[str, PlainValidator(_sink_name)] = ""
    airflow_api_conn_id: Annotated[Any, PlainValidator(_filled)] = CONN_ID
    dry_run: FormFlag = False


class RewindArguments(VerbArguments):
    """What is judged of a rewind besides the place to go back to."""

    skip: FormFlag = False


class ReplayArguments(VerbArguments):
    """What is judged of a replay besides which letters it takes."""

    overwrite: FormFlag = False
    forget: FormFlag = False


class ResetArguments(VerbArguments):
    """What a reset takes."""

    data: Annotated[str, PlainValidator(_output)]
    dead_letter: Annotated[str, PlainValidator(_output)]


class DropArguments(VerbArguments):
    """What a drop takes."""

    delete_topics: Annotated[Any, PlainValidator(_topics)]
