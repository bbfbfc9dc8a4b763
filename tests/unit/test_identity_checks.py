"""What a connection leads to is compared with what the sink knew, as its next start compares it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_sinks.core.checks.check import Check, Checks, Family, Outcome
from airflow_provider_sinks.core.checks.identities import IdentityChecks
from airflow_provider_sinks.core.decision.facts import Existence, ResourceFacts, Role
from airflow_provider_sinks.core.progress.identity import Identity, ResourceKind
from tests.facts import IDENTITIES, witness

KNOWN = {
    Role.DATA: Identity("7399/shop", "public.orders", "16402"),
    Role.DEAD_LETTER: Identity("7399/shop", "public.orders_dead", "16410"),
    Role.PROGRESS: Identity("7399/shop", "public._sinks_progress", "16390"),
}
ELSEWHERE: dict[str, Any] = {"system": "7420/shop"}
GONE: dict[str, Any] = {"existence": Existence.MISSING, "id": ""}
HIDDEN: dict[str, Any] = {"existence": Existence.UNKNOWN, "id": "", "reason": "denied"}
ANEW: dict[str, Any] = {"id": "16500"}
EVERYTHING, NOTHING = {"rows": 7, "dead": 2}, {"rows": 0, "dead": 0}


def compared(role: Role, changes: dict[str, Any], written: dict[str, int], **given: Any) -> Check:
    known = replace(
        IDENTITIES,
        data=KNOWN[Role.DATA],
        dead_letter=KNOWN[Role.DEAD_LETTER],
        progress=KNOWN[Role.PROGRESS],
    )
    then = KNOWN[role]
    facts = ResourceFacts(then.name, Existence.PRESENT, then.system, then.id, kind=ResourceKind.TABLE)
    checks = IdentityChecks(Checks("pg", Family.DATABASE), witness(identities=known, **written), **given)
    (check,) = checks.of({role: replace(facts, **changes)})
    return check


@pytest.mark.parametrize(
    ("role", "changes", "written", "outcome", "says"),
    [
        (Role.DATA, {}, EVERYTHING, Outcome.PASS, "database 7399/shop, as before"),
        (Role.DATA, HIDDEN, EVERYTHING, Outcome.PASS, "as before"),
        (Role.DATA, {**HIDDEN, "system": ""}, EVERYTHING, Outcome.SKIPPED, "it cannot be seen: denied"),
        (Role.DATA, {"name": "public.o"}, EVERYTHING, Outcome.SKIPPED, '"public.orders"'),
        (
            Role.DATA,
            ELSEWHERE,
            EVERYTHING,
            Outcome.FAIL,
            "leads to database 7420/shop, where it has id 16402;",
        ),
        (Role.DATA, {**ELSEWHERE, **GONE}, EVERYTHING, Outcome.FAIL, "7420/shop, where it is missing; "),
        (Role.DATA, {**ELSEWHERE, **HIDDEN}, EVERYTHING, Outcome.FAIL, "7420/shop, where it is unknown; "),
        (
            Role.DATA,
            ANEW,
            EVERYTHING,
            Outcome.FAIL,
            "another table of this name: id 16500, the sink knew 16402",
        ),
        (Role.DATA, GONE, EVERYTHING, Outcome.FAIL, "it is not there any more; the sink knew 16402"),
        (Role.DATA, ELSEWHERE, {"rows": 0, "dead": 2}, Outcome.UNKNOWN, "nothing was written there"),
        (Role.DATA, GONE, NOTHING, Outcome.UNKNOWN, "nothing was written there"),
        (Role.DEAD_LETTER, ANEW, EVERYTHING, Outcome.FAIL, "and set 2 dead letters aside there"),
        (Role.DEAD_LETTER, ELSEWHERE, {"rows": 7}, Outcome.UNKNOWN, "if dead letters were written"),
        (Role.PROGRESS, ELSEWHERE, EVERYTHING, Outcome.FAIL, "and keeps there that it wrote 7 rows"),
        (Role.PROGRESS, GONE, {"rows": 0, "dead": 1}, Outcome.FAIL, "it is not there any more"),
        (Role.PROGRESS, ELSEWHERE, NOTHING, Outcome.UNKNOWN, "nothing was written there"),
    ],
)
def test_an_output_that_holds_rows_must_be_the_one_that_they_were_written_to(
    role: Role, changes: dict[str, Any], written: dict[str, int], outcome: Outcome, says: str
) -> None:
    check = compared(role, changes, written)

    assert check.outcome is outcome, check
    assert says in check.detail


def test_the_finding_says_what_it_was_and_is_and_what_can_be_done() -> None:
    check = compared(Role.DATA, {**ELSEWHERE, "id": "16385"}, EVERYTHING)

    assert check.name == 'identity of data table "public.orders"'
    assert check.detail == (
        "this connection leads to database 7420/shop, where it has id 16385; the sink ran on 7399/shop, "
        "knew it by id 16402, and wrote 7 rows to it"
    )
    assert check.hint == (
        "Name the database it ran on. To move the sink on purpose: pause it, alter the connection with "
        "validate=False, and start it with one of the ways on that its start offers."
    )


def test_what_a_start_can_be_answered_to_is_told_before_it_and_fails_nothing() -> None:
    check = compared(Role.DATA, ANEW, EVERYTHING, start_decides=True)

    assert check.outcome is Outcome.UNKNOWN
    assert check.detail.endswith("and wrote 7 rows to it; a start refuses it")
    assert "airflow sinks plan" in check.hint
