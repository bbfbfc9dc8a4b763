"""The harness can fail: under the same kills Spark's own Kafka sink writes rows twice, and that is seen."""

from __future__ import annotations

import pytest

from tests.faults.checker import Verdict


@pytest.mark.parametrize("told", [("at least once", "driver")], indirect=True, ids=[""])
def test_sparks_own_sink_loses_nothing_and_doubles_rows(told: Verdict) -> None:
    assert not told.missing
    assert told.duplicates, str(told)
