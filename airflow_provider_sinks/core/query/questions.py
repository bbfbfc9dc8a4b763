"""Does Spark take the SQL of a sink? Asked by a validation, answered by a Spark of its own, through files.

The files hold specs and the types of lookup tables, and nothing of a connection.
"""

from __future__ import annotations

import base64
import enum
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, assert_never

from airflow_provider_sinks.core.errors import Problem
from airflow_provider_sinks.core.spec.sink import SinkSpec


class AskSpark(enum.StrEnum):
    """Whether a validation asks Spark: where it is there, in any case, or not at all."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True)
class SqlQuestion:
    """One sink, and what its SQL is about.

    :param lookups: by the name of a lookup its columns and types: an Arrow schema, as Arrow writes it.
    """

    spec: SinkSpec
    lookups: Mapping[str, bytes]


@dataclass(frozen=True)
class Taken:
    """Spark takes it.

    :param spark: the version of Spark.
    :param output: the query's columns, as Spark writes a struct as JSON.
    """

    spark: str
    seconds: float
    output: str = "{}"


@dataclass(frozen=True)
class NotTaken:
    """Spark does not take it, and neither would it in the job."""

    problems: tuple[Problem, ...]
    seconds: float


@dataclass(frozen=True)
class NoAnswer:
    """Nobody said.

    :param why: one clause, such as ``spark-submit is not on the PATH of this worker``.
    :param hint: what helps.
    :param retryable: whether asking again may help.
    """

    why: str
    hint: str = ""
    retryable: bool = False


SqlAnswer = Taken | NotTaken | NoAnswer


@dataclass(frozen=True)
class QuestionFiles:
    """The folder through which both speak.

    :param directory: private to who asks; gone when the answer was read.
    """

    directory: Path

    @property
    def liveness_lock(self) -> Path:
        """Held by who asks, for as long as somebody waits for the answer."""
        return self.directory / "hold"

    @property
    def log(self) -> Path:
        """What Spark prints."""
        return self.directory / "spark.log"

    @property
    def settings(self) -> Path:
        """The Spark settings: in place of those of the installation, which may load what they like."""
        return self.directory / "spark.properties"

    def ask(self, questions: Sequence[SqlQuestion]) -> None:
        """Write the questions."""
        self._questions.write_text(json.dumps([_question_data(question) for question in questions]))

    def questions(self) -> list[SqlQuestion]:
        """Read the questions."""
        return [_question(data) for data in json.loads(self._questions.read_text())]

    def answer(self, answers: Sequence[SqlAnswer]) -> None:
        """Write the answers, in the order of the questions."""
        self._answers.write_text(json.dumps([_answer_data(answer) for answer in answers]))

    def answers(self) -> list[SqlAnswer] | None:
        """Read the answers, or return ``None`` where nobody wrote any."""
        if not self._answers.exists():
            return None
        return [_answer(data) for data in json.loads(self._answers.read_text())]

    @property
    def _questions(self) -> Path:
        return self.directory / "questions.json"

    @property
    def _answers(self) -> Path:
        return self.directory / "answers.json"


def _question_data(question: SqlQuestion) -> dict[str, Any]:
    lookups = {name: base64.b64encode(schema).decode() for name, schema in question.lookups.items()}
    return {"spec": json.loads(question.spec.to_json()), "lookups": lookups}


def _question(data: Mapping[str, Any]) -> SqlQuestion:
    lookups = {name: base64.b64decode(schema) for name, schema in data["lookups"].items()}
    return SqlQuestion(SinkSpec.parse(data["spec"]), lookups)


def _answer_data(answer: SqlAnswer) -> dict[str, Any]:
    match answer:
        case Taken():
            return {"taken": asdict(answer)}
        case NotTaken():
            return {"not_taken": asdict(answer)}
        case NoAnswer():
            return {"no_answer": asdict(answer)}
        case other:
            assert_never(other)


def _answer(data: Mapping[str, Any]) -> SqlAnswer:
    if "taken" in data:
        return Taken(**data["taken"])
    if "no_answer" in data:
        return NoAnswer(**data["no_answer"])
    found = data["not_taken"]
    return NotTaken(tuple(Problem(**problem) for problem in found["problems"]), found["seconds"])
