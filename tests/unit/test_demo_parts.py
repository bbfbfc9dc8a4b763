"""The parts of the demo that need no service: its data, its table, its way of leaving things up."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from pathlib import Path

import psutil
import pytest

import airflow_provider_sinks
from airflow_provider_sinks.local.processes import LocalServiceError
from scripts.demo import demo
from scripts.demo.act import Act
from scripts.demo.keep import run_until_it_lets_go
from scripts.demo.pageviews import USERS, pageviews, users
from scripts.demo.say import say, step
from scripts.demo.table import grid, table

KEEPER = """
import os, pathlib, sys
from scripts.demo.keep import let_go, wait_for_a_signal
folder = pathlib.Path(sys.argv[1])
(folder / "pid").write_text(str(os.getpid()))
if sys.argv[2] == "fail":
    sys.exit(4)
let_go(int(sys.argv[3]), 3, folder / "log")
print("in the log now", flush=True)
wait_for_a_signal()
"""


def test_the_pageviews_are_the_same_at_every_run() -> None:
    assert list(pageviews(1000)) == list(pageviews(1000))
    assert list(users()) == list(users())


def test_no_two_pageviews_are_equal_and_each_is_later() -> None:
    times = [view.viewtime for view in pageviews(1000)]

    assert times == sorted(set(times))


def test_a_record_is_json_of_the_pageview() -> None:
    view = next(pageviews(1))

    assert json.loads(view.json) == view._asdict()


def test_one_user_in_ten_is_a_guest() -> None:
    assert len(dict(users())) == USERS * 9 // 10


def test_the_table_is_flush() -> None:
    lines = table({"rows": 200_000, "rate": 41.6, "state": "ok"}).splitlines()

    assert lines[1:-1] == ["rows   200,000", "rate        42", "state       ok"]
    assert lines[0] == lines[-1] == "-" * 14


def test_a_grid_has_texts_left_and_numbers_right() -> None:
    lines = grid(("sink", "rows"), [("a", 200_000), ("longer", 3)]).splitlines()

    assert lines[1] == "sink       rows"
    assert lines[3:-1] == ["a       200,000", "longer        3"]
    assert lines[0] == lines[2] == lines[-1] == "-" * 15


# The child is meant to outlive the object that started it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_command_ends_when_its_child_lets_go_and_the_child_lives_on(tmp_path: Path) -> None:
    code = run_until_it_lets_go(["-c", KEEPER, str(tmp_path), "keep"])
    child = psutil.Process(int((tmp_path / "pid").read_text()))
    try:
        deadline = time.monotonic() + 10
        while not (tmp_path / "log").read_text() and time.monotonic() < deadline:
            time.sleep(0.05)

        assert code == 3
        assert child.is_running()
        assert (tmp_path / "log").read_text() == "in the log now\n"
        assert os.getsid(child.pid) == child.pid
    finally:
        child.send_signal(signal.SIGTERM)
        child.wait(10)


def test_a_command_ends_as_a_child_that_never_lets_go(tmp_path: Path) -> None:
    assert run_until_it_lets_go(["-c", KEEPER, str(tmp_path), "fail"]) == 4


def test_the_demo_stands_outside_of_the_wheel() -> None:
    package = Path(airflow_provider_sinks.__file__).parent
    modules = {file.stem for file in Path(demo.__file__).parent.glob("*.py")} - {"__main__"}

    assert modules.isdisjoint(file.stem for file in (package / "local").iterdir())
    assert [file for file in package.rglob("*.py") if "scripts." in file.read_text()] == []


def test_acts_that_run_side_by_side_are_shown_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    second_is_over = threading.Event()

    def first() -> None:
        second_is_over.wait(10)
        say("one")

    def second() -> int:
        with step("Two"):
            say("two")
        second_is_over.set()
        return 2

    acts = [Act("1.", first).start(), Act("2.", second).start()]

    assert [act.show() for act in acts] == [None, 2]
    assert re.sub(r"\d+\.\d s", "… s", capsys.readouterr().out) == "\n1.\none\n\n2.\ntwo\nTwo: ready (… s)\n"


def test_an_act_that_failed_says_so_when_it_is_shown_and_to_those_that_wait_for_it() -> None:
    def fail() -> None:
        raise LocalServiceError("it went wrong")

    failing = Act("1.", fail).start()
    waiting = Act("2.", failing.result).start()

    for act in (failing, waiting):
        with pytest.raises(LocalServiceError, match="it went wrong"):
            act.show()
