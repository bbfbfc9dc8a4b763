"""Is the DAG of a running task gone for good? Late, and on evidence only."""

from __future__ import annotations

import pytest

from airflow_provider_sinks.core.lifecycle.dag_gone import GONE_FOR_SECONDS, Absence, File, Listed, is_gone


@pytest.mark.parametrize("file", File)
@pytest.mark.parametrize("listed", Listed)
def test_only_airflow_or_a_missing_file_says_that_a_dag_is_gone(listed: Listed, file: File) -> None:
    expected = listed is Listed.GONE or (listed, file) == (Listed.UNKNOWN, File.MISSING)

    assert is_gone(listed, file) is expected


@pytest.mark.parametrize(
    ("looks", "final"),
    [
        pytest.param([], False, id="never-looked"),
        pytest.param([(0, True)], False, id="just-gone"),
        pytest.param([(0, True), (GONE_FOR_SECONDS, True)], True, id="gone-for-long"),
        pytest.param([(0, True), (GONE_FOR_SECONDS - 1, True)], False, id="not-for-long-enough"),
        pytest.param([(0, True), (60, False), (GONE_FOR_SECONDS, True)], False, id="it-was-there-in-between"),
        pytest.param([(0, True), (GONE_FOR_SECONDS, False)], False, id="it-came-back"),
    ],
)
def test_it_is_final_once_every_look_found_it_gone_for_long(
    looks: list[tuple[float, bool]], final: bool
) -> None:
    absence = Absence()
    for at, gone in looks:
        absence = absence.seen(gone=gone, at_seconds=at)

    assert absence.is_final(looks[-1][0] if looks else 0.0) is final
