"""What is said when tests run in lanes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.lanes import (
    _LONG,
    Lane,
    all_others,
    closing_line,
    contracts,
    drivers,
    formats,
    of_formats,
    of_long,
    usual,
    waiting,
)
from tests.long_tests import LONG

_ONE_OF_EACH = """
def test_right(): pass
def test_wrong(): assert not "wrong on purpose"
"""


def test_all_lanes_are_counted_and_a_failure_is_told_at_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in {"test_a.py": _ONE_OF_EACH, "test_b.py": "def test_b(): pass"}.items():
        (tmp_path / name).write_text(text)
    lanes = [Lane([str(tmp_path / name), "-p", "no:cacheprovider"]) for name in ("test_a.py", "test_b.py")]

    codes = [lane.follow() for lane in lanes]

    assert codes == [1, 0]
    assert closing_line(lanes, 1.5).strip("= ") == "1 failed, 2 passed in 1.50s"
    assert "wrong on purpose" not in capsys.readouterr().out
    assert any("wrong on purpose" in line for line in lanes[0].last_words)


def test_a_lane_that_never_says_how_it_ended_is_an_error(tmp_path: Path) -> None:
    lane = Lane([str(tmp_path / "absent")])

    assert lane.follow() != 0
    assert "1 error" in closing_line([lane], 1)


def test_every_live_test_is_in_one_lane() -> None:
    ignored = [argument.removeprefix("--ignore=") for argument in all_others() if "=" in argument]
    apart = [*formats(), *drivers(), *waiting(), *contracts()]

    assert all(path.exists() for path in apart)
    assert len(apart) == len(set(apart))
    assert set(map(str, apart)) <= set(ignored)


def test_what_is_long_is_left_to_a_lane_of_its_own() -> None:
    assert [lane[1:] for lane in usual()] == [lane[1:] for lane in of_long()]
    assert {lane[0] for lane in usual()} == {"--leave-long"}
    assert {lane[0] for lane in of_long()} == {"--only-long"}


@pytest.mark.parametrize("pattern", LONG)
def test_what_is_called_long_is_there(pattern: str) -> None:
    file, name = re.match(r"(?:(\S*?)\\\.py)?::(?:\.\*)?(\w*)", pattern).groups()  # type: ignore[union-attr]
    paths = [*Path("tests").rglob(f"*{(file or '').rpartition('/')[2]}.py")]
    contract = Path("airflow_provider_sinks", "testing", "connector_contract.py")

    assert paths
    assert any(name in path.read_text() for path in ([contract] if file is None else paths))


def test_each_test_of_formats_is_in_one_of_their_lanes() -> None:
    assert sorted(path for lane in of_formats() for path in lane) == sorted(map(str, formats()))


def test_what_is_left_out_for_its_length_is_there() -> None:
    for path in _LONG:
        assert path.parent in drivers()
        assert path.exists()
