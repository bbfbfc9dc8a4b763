from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

FAILED = re.compile(r"^FAILED \S+::(?P<test>\w+)\[(?P<store>\w+)", re.MULTILINE)
CAUGHT_BY = {
    "WithoutCompareAndSet": "test_of_two_writers_of_one_id_the_one_that_opened_last_commits",
    "ComparesEpochsOnly": "test_a_long_range_is_committed_in_steps",
    "FencesTheDriverOnly": "test_a_newer_start_fences_the_writers_of_the_older",
    "RowsBeforeTheRecord": "test_a_commit_that_was_lost_is_known_by_the_progress",
    "TakesTokensTwice": "test_only_the_rows_of_the_tokens_become_visible_and_only_once",
    "TakesTokensOfAnyRun": "test_tokens_of_an_older_start_are_refused",
}


@pytest.fixture(scope="module")
def failed() -> dict[str, set[str]]:
    """Which tests of the contract fail, by the fault of the target."""
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider"]
    stores = str(Path(__file__).with_name("broken_stores.py"))
    done = subprocess.run([*command, stores], capture_output=True, text=True, check=False)
    found: dict[str, set[str]] = defaultdict(set)
    for failure in FAILED.finditer(done.stdout):
        found[failure["store"]].add(failure["test"])
    return found


@pytest.mark.parametrize("store", CAUGHT_BY)
def test_the_contract_catches_a_broken_target(failed: dict[str, set[str]], store: str) -> None:
    assert CAUGHT_BY[store] in failed[store]


def test_a_target_with_one_fault_fails_some_tests_only(failed: dict[str, set[str]]) -> None:
    assert {store for store, tests in failed.items() if len(tests) > 8} == set()
