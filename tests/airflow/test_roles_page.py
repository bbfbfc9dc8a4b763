"""The page that says who may trigger what, compared with what the forms declare."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "roles.md").read_text()
ENFORCED = re.compile(r"^\| `(\w+)=.*?` \| ([^|]*) \|", re.MULTILINE)
IN_HANDS = re.compile(r"^\| `(\w+_dag)` \| [^|]+ \| [^|]+ \|$", re.MULTILINE)


def factories() -> dict[str, set[str]]:
    """By the name of a form's factory, what it takes."""
    from airflow_provider_sinks import forms

    made = {name: getattr(forms, name) for name in forms.__all__ if name.endswith("_dag")}
    return {name: set(inspect.signature(factory).parameters) for name, factory in made.items()}


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
