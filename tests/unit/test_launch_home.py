"""Which sinks a form may launch."""

from __future__ import annotations

import pytest

from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.launch.home import Home, demand_own

FORM = Home("run_sink_once", "submit")


@pytest.mark.parametrize(
    ("sink", "last", "is_new"),
    [("clicks", None, True), ("clicks", FORM, False), ("clicks_once", None, False)],
    ids=["new", "launched by the form", "named by the form's author, and launched by nobody knows whom"],
)
def test_a_form_launches_its_own_sinks(sink: str, last: Home | None, *, is_new: bool) -> None:
    demand_own(sink, FORM, last, is_new=is_new, own=["clicks_once"])


@pytest.mark.parametrize(
    ("sink", "last", "is_new", "said"),
    [
        ("clicks", Home("clicks", "submit"), False, "is a sink that another task has launched"),
        ("clicks", Home("run_sink_once", "other"), False, "is a sink that another task has launched"),
        ("clicks_once", Home("clicks", "submit"), False, "is a sink that another task has launched"),
        ("clicks", None, False, "was launched before, maybe by another task"),
        ("clicks-replay", None, True, "is the name of a replay"),
        ("clicks-replay", FORM, False, "is the name of a replay"),
    ],
)
def test_a_form_launches_no_other_sink(sink: str, last: Home | None, said: str, *, is_new: bool) -> None:
    with pytest.raises(ConfigurationError, match=said) as told:
        demand_own(sink, FORM, last, is_new=is_new, own=["clicks_once"])

    assert not told.value.retryable
