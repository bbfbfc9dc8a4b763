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
    is_worth_a_second_try,
    of_formats,
    of_long,
    rerun,
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


_ONCE = """
from pathlib import Path
def test_once():
    seen = Path(__file__).with_name("seen")
    was_there = seen.exists()
    seen.touch()
    assert was_there, "wrong at first"
def test_right(): pass
"""


@pytest.mark.parametrize(
    ("text", "code", "closing"),
    [
        pytest.param(_ONCE, 0, "2 passed, 1 rerun in 1.50s", id="by chance"),
        pytest.param(_ONE_OF_EACH, 1, "1 failed, 1 passed in 1.50s", id="for good"),
    ],
)
def test_what_failed_may_pass_at_a_second_try_and_that_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, code: int, closing: str
) -> None:
    (tmp_path / "test_a.py").write_text(text)
    lane = Lane([str(tmp_path / "test_a.py"), "-o", f"cache_dir={tmp_path / 'memory'}"])

    assert is_worth_a_second_try([lane], [lane.follow()])
    assert rerun([lane]) == [code]
    assert closing_line([lane], 1.5).strip("= ") == closing
    assert ("passed at the second try: " in capsys.readouterr().out) is not bool(code)


@pytest.mark.parametrize(("count", "codes"), [(0, [0]), (1, [3]), (4, [1])])
def test_what_is_no_chance_gets_no_second_try(count: int, codes: list[int]) -> None:
    lane = object.__new__(Lane)
    lane.last_words = [f"FAILED tests/test_a.py::test_{number} - why" for number in range(count)]

    assert not is_worth_a_second_try([lane], codes)


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
