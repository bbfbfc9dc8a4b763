"""What a report says of the SQL of a sink, whatever Spark said, or where nobody asked it."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_sinks.core.checks.check import Outcome, Report
from airflow_provider_sinks.core.checks.sql import NAME, NOT_IN_ALTERATION, not_wanted, sql_checks
from airflow_provider_sinks.core.errors import Problem
from airflow_provider_sinks.core.query.questions import (
    AskSpark,
    NoAnswer,
    NotTaken,
    QuestionFiles,
    SqlAnswer,
    SqlQuestion,
    Taken,
)
from airflow_provider_sinks.core.spec.sink import SinkSpec

AUTO, ALWAYS = AskSpark.AUTO, AskSpark.ALWAYS
TWO = NotTaken((Problem("where", "has no type", "a date"), Problem("select[1]", "has none either")), 0.1)
AWAY = NoAnswer("spark-submit is not on the PATH of this worker", "Install Spark.")
SLOW = NoAnswer("Spark did not answer within 9 s", "Give it more time.", retryable=True)
LATER = "the types of the SQL are not checked; the job asks Spark before it makes anything"

Line = tuple[str, Outcome, str, str, bool]
LINES: list[tuple[SqlAnswer, AskSpark, list[Line]]] = [
    (Taken("4.1.1", 0.2), AUTO, [(NAME, Outcome.PASS, "Spark 4.1.1 takes it", "", False)]),
    (
        TWO,
        AUTO,
        [
            (f"{NAME}: where", Outcome.FAIL, "has no type", "a date", False),
            (f"{NAME}: select[1]", Outcome.FAIL, "has none either", "", False),
        ],
    ),
    (AWAY, AUTO, [(NAME, Outcome.UNKNOWN, f"{AWAY.why}: {LATER}", AWAY.hint, False)]),
    (SLOW, AUTO, [(NAME, Outcome.UNKNOWN, f"{SLOW.why}: {LATER}", SLOW.hint, False)]),
    (AWAY, ALWAYS, [(NAME, Outcome.FAIL, AWAY.why, AWAY.hint, False)]),
    (SLOW, ALWAYS, [(NAME, Outcome.FAIL, SLOW.why, SLOW.hint, True)]),
]


@pytest.mark.parametrize(("answer", "ask", "lines"), LINES)
def test_the_report_says_what_spark_said_or_that_it_did_not(
    answer: SqlAnswer, ask: AskSpark, lines: list[Line]
) -> None:
    checks = list(sql_checks("orders", answer, ask))

    assert [(c.name, c.outcome, c.detail, c.hint, c.retryable) for c in checks] == lines
    assert {check.subject for check in checks} == {"orders"}


@pytest.mark.parametrize("why", [None, NOT_IN_ALTERATION])
def test_a_report_says_that_spark_was_not_asked(why: str | None) -> None:
    check = not_wanted("orders") if why is None else not_wanted("orders", why)

    assert check.outcome is Outcome.SKIPPED
    assert LATER in Report("sink", (check,)).table()


def test_questions_and_answers_come_as_they_were_sent(tmp_path: Path) -> None:
    files = QuestionFiles(tmp_path)
    spec = SinkSpec.parse({"name": "orders", "source": "k/in", "target": "k/out"})
    questions = [SqlQuestion(spec, {"users": b"\x00\xff an Arrow schema"})]
    answers: list[SqlAnswer] = [Taken("4.1.1", 0.5), TWO, AWAY, SLOW]

    files.ask(questions)
    before = files.answers()
    files.answer(answers)

    assert (files.questions(), before, files.answers()) == (questions, None, answers)
