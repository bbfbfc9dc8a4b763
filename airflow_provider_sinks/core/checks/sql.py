"""The SQL of a sink, as Spark itself judges it: names and types that only Spark knows exactly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from airflow_provider_sinks.core.checks.check import Check, Checks, Family
from airflow_provider_sinks.core.query.questions import AskSpark, NoAnswer, NotTaken, SqlAnswer, Taken

NAME = "SQL, by Spark"
_LATER = "the types of the SQL are not checked; the job asks Spark before it makes anything"
NOT_IN_ALTERATION = f"an alteration starts no Spark: {_LATER}"
NOT_WANTED = f'ask_spark is "{AskSpark.NEVER}": {_LATER}'


def sql_checks(sink: str, answer: SqlAnswer, ask_spark: AskSpark) -> Iterator[Check]:
    """Judge what Spark said about the SQL of a sink: one failed check per option that does not fit.

    :param ask_spark: ``always`` makes no answer a failure.
    """
    checks = Checks(sink, Family.SQL)
    match answer:
        case Taken():
            yield checks.passes(NAME, f"Spark {answer.spark} takes it", answer.seconds)
        case NotTaken():
            for problem in answer.problems:
                name = f"{NAME}: {problem.where}" if problem.where else NAME
                yield checks.fails(name, problem.what, problem.hint, answer.seconds)
        case NoAnswer() if ask_spark is AskSpark.ALWAYS:
            yield checks.fails(NAME, answer.why, answer.hint, retryable=answer.retryable)
        case NoAnswer():
            yield checks.unknown(NAME, f"{answer.why}: {_LATER}", answer.hint)
        case other:
            assert_never(other)


def not_wanted(sink: str, why: str = NOT_WANTED) -> Check:
    """Say that Spark was not asked."""
    return Checks(sink, Family.SQL).skips(NAME, why)
