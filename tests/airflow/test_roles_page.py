"""The page that says who may trigger what, compared with what the forms declare."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from tests.live.people import MAY_READ, MAY_SEE, MAY_TRIGGER

PAGE = (Path(__file__).parents[2] / "docs" / "roles.md").read_text()
ENFORCED = re.compile(r"^\| `(\w+)=.*?` \| ([^|]*) \|", re.MULTILINE)
IN_HANDS = re.compile(r"^\| `(\w+_dag)` \| [^|]+ \| [^|]+ \|$", re.MULTILINE)


ROLES_ALLOW = re.compile(r"^\| \| viewer \| user \| op, admin \|\n\|[-|]+\n((?:\|.*\n)+)", re.MULTILINE)


def factories() -> dict[str, set[str]]:
    """By the name of a form's factory, what it takes."""
    from airflow_provider_sinks import forms

    made = {name: getattr(forms, name) for name in forms.__all__ if name.endswith("_dag")}
    return {name: set(inspect.signature(factory).parameters) for name, factory in made.items()}


def test_the_page_says_of_each_role_what_a_real_airflow_answers_it() -> None:
    (table,) = ROLES_ALLOW.findall(PAGE)
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()]
    codes = {"yes": 200, "no": 403}
    told = {what: [codes[re.split(r"\W", cell)[0]] for cell in cells] for what, *cells in rows}

    found = dict(zip(("see", "trigger", "read", "change"), told.items(), strict=True))
    for verb, answered in (
        ("see", MAY_SEE),
        ("trigger", MAY_TRIGGER),
        ("read", MAY_READ),
        ("change", MAY_READ),
    ):
        what, said = found[verb]
        assert what.startswith(verb)
        assert said == list(answered.values()), what


def test_the_page_says_what_each_form_does_in_whose_hands() -> None:
    assert sorted(IN_HANDS.findall(PAGE)) == sorted(factories())


def test_the_page_names_each_argument_that_keeps_people_out_and_the_forms_that_take_it() -> None:
    told = dict(ENFORCED.findall(PAGE))
    taken = {name: {form for form, given in factories().items() if name in given} for name in told}

    assert set(told) == {"users", "approvers", "connections", "target_connections", "paths", "servers"}
    assert told.pop("users") == "every form"
    assert taken.pop("users") == set(factories())
    assert {name: set(re.findall(r"`(\w+_dag)`", text)) for name, text in told.items()} == taken


def test_the_page_says_what_the_forms_grant_to_whom() -> None:
    from airflow_provider_sinks.forms import ACCESS_CONTROL

    (said,) = re.findall(r"`airflow_provider_sinks\.forms\.ACCESS_CONTROL`: ([^.]*)\.", PAGE)
    words = {"can_read": "read", "can_edit": "edit", "can_create": "trigger"}
    rights = {
        role: {words[one] for of in given.values() for one in of} for role, given in ACCESS_CONTROL.items()
    }

    page = "*Op* may read, edit and trigger the DAG, *User* and *Viewer* may read it"
    assert " ".join(said.split()) == page
    assert rights == {"Op": {"read", "edit", "trigger"}, "User": {"read"}, "Viewer": {"read"}}
