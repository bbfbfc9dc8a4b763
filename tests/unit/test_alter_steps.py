"""The steps of an alteration: a dry run's list is what a run does, and no crash leaves half of anything."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest

from airflow_provider_sinks.core.alter.steps import (
    Before,
    End,
    Facts,
    Row,
    Step,
    Watch,
    Wishes,
    after,
    next_step,
    plan,
)

FRESH = Facts(Row.OLD, Before.ABSENT)
ALL = (Step.VALIDATE, Step.PREFLIGHT, Step.KEEP, Step.COMMIT, Step.WATCH, Step.FORGET)
WISHES = [Wishes(*flags) for flags in itertools.product((True, False), repeat=3)]


@pytest.mark.parametrize(
    ("facts", "wishes", "steps"),
    [
        pytest.param(FRESH, Wishes(), ALL, id="all-seven-with-read"),
        pytest.param(FRESH, Wishes(validate=False), ALL[2:], id="without-validation"),
        pytest.param(FRESH, Wishes(restart=False), (*ALL[:4], Step.FORGET), id="without-restart"),
        pytest.param(Facts(Row.SAME, Before.ABSENT), Wishes(), (), id="nothing-to-change"),
        pytest.param(Facts(Row.OLD, Before.THEIRS), Wishes(), (), id="somebody-alters"),
        pytest.param(
            Facts(Row.OLD, Before.OURS),
            Wishes(),
            (*ALL[:2], *ALL[3:]),
            id="an-earlier-try-kept-the-old-options",
        ),
        pytest.param(Facts(Row.NEW, Before.OURS), Wishes(), ALL[4:], id="an-earlier-try-changed-it"),
        pytest.param(
            Facts(Row.NEW, Before.UNDOING),
            Wishes(),
            (Step.UNDO, Step.WATCH_OLD, Step.FORGET),
            id="an-earlier-try-was-undoing-it",
        ),
        pytest.param(
            Facts(Row.OLD, Before.UNDOING),
            Wishes(),
            (Step.WATCH_OLD, Step.FORGET),
            id="an-earlier-try-undid-it",
        ),
        pytest.param(Facts(Row.OTHER, Before.OURS), Wishes(), (Step.FORGET,), id="somebody-edited-it"),
        pytest.param(
            Facts(Row.SAME, Before.OURS), Wishes(), (Step.FORGET,), id="a-variable-has-the-old-secret"
        ),
    ],
)
def test_the_steps_that_are_left(facts: Facts, wishes: Wishes, steps: tuple[Step, ...]) -> None:
    assert plan(facts, wishes) == steps


def test_before_anything_is_known_it_is_read() -> None:
    assert next_step(None, Wishes()) is Step.READ


@pytest.mark.parametrize(
    ("rollback", "steps", "end"),
    [
        (True, (Step.UNDO, Step.WATCH_OLD, Step.FORGET), End.UNDONE),
        (False, (Step.FORGET,), End.NOT_UNDONE),
    ],
)
def test_when_a_sink_does_not_come_back(rollback: bool, steps: tuple[Step, ...], end: End) -> None:
    failed = Facts(Row.NEW, Before.OURS, validated=True, preflighted=True, watch=Watch.FAILED)
    wishes = Wishes(rollback=rollback)

    assert plan(failed, wishes) == steps
    assert run(failed, wishes)[-1].end is end


def test_somebody_elses_edit_is_never_overwritten() -> None:
    for before, watch, wishes in itertools.product((Before.OURS, Before.UNDOING), Watch, WISHES):
        facts = Facts(Row.OTHER, before, watch=watch)

        assert plan(facts, wishes) == (Step.FORGET,)
        assert next_step(after(Step.FORGET, facts), wishes) is End.OVERTAKEN


@pytest.mark.parametrize("wishes", WISHES)
@pytest.mark.parametrize("watch", [Watch.BACK, Watch.FAILED])
def test_a_crash_anywhere_and_a_retry_end_wholly_old_or_wholly_new(wishes: Wishes, watch: Watch) -> None:
    for crashed in states(FRESH, wishes, watch):
        retry = replace(crashed, validated=False, preflighted=False, watch=Watch.NONE, watched_old=False)
        if crashed.end is not None:
            continue
        *_, last = run(retry, wishes, watch)

        assert last.before is Before.ABSENT
        assert last.row in (Row.OLD, Row.NEW)
        if crashed.before is Before.UNDOING:
            assert last.row is Row.OLD


def run(facts: Facts, wishes: Wishes, watch: Watch = Watch.BACK) -> list[Facts]:
    """Return what is known after each step, the first included."""
    known = [facts]
    while isinstance(step := next_step(known[-1], wishes), Step):
        known.append(done(step, known[-1], watch))
        assert len(known) < 20, "it does not end"
    return known


def states(facts: Facts, wishes: Wishes, watch: Watch) -> Iterator[Facts]:
    """Yield every state that a crash can leave: after each step, and in the middle of an undo."""
    for known in run(facts, wishes, watch):
        yield known
        if next_step(known, wishes) is Step.UNDO:
            yield replace(known, before=Before.UNDOING)


def done(step: Step, facts: Facts, watch: Watch) -> Facts:
    return replace(facts, watch=watch) if step is Step.WATCH else after(step, facts)
