"""What the checker writes for programs, read back by parsers that know nothing of it."""

from __future__ import annotations

import json
import re
from urllib.parse import unquote
from xml.etree.ElementTree import fromstring

import pytest

from airflow_provider_sinks.checker import command
from airflow_provider_sinks.checker.facts import Place
from airflow_provider_sinks.checker.finding import Finding
from airflow_provider_sinks.checker.formats import FORMATS, to_github, to_junit, to_sarif
from airflow_provider_sinks.checker.report import Report

FILE = "dags/a b,c:d%41é.py"
NASTY = "one\r\ntwo ::error::\"<a href='x'>&amp;]]> %0A, 100% \x07 \ud800 ß 😀"
FOUND = Report(
    "dags",
    (Finding(Place(FILE, 7), "plan", NASTY, "mend it"), Finding(Place("x.yaml"), "cycle", "round", "stop")),
)
CLEAN = Report("dags", ())


def github_command(line: str) -> tuple[dict[str, str], str]:
    """Read a workflow command as GitHub's runner does."""
    found = re.fullmatch(r"::error (?P<properties>.*?)::(?P<data>.*)", line)
    assert found, line
    properties = dict(one.split("=", 1) for one in found["properties"].split(","))
    for escape, sign in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        properties = {name: value.replace(escape, sign) for name, value in properties.items()}
    data = found["data"].replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")
    return properties, data


def test_github_gets_one_line_for_each_finding_whatever_stands_in_it() -> None:
    first, second, summary = to_github(FOUND).split("\n")

    assert github_command(first) == (
        {"file": FILE, "line": "7", "title": "plan"},
        f"{NASTY}\nRemedy: mend it",
    )
    assert github_command(second)[0] == {"file": "x.yaml", "line": "1", "title": "cycle"}
    assert summary.startswith("dags: 2 findings in ")


def test_sarif_names_rule_text_and_place() -> None:
    document = json.loads(to_sarif(FOUND))

    (run,) = document["runs"]
    first, second = run["results"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    place = first["locations"][0]["physicalLocation"]
    assert document["version"] == "2.1.0"
    assert [rules[result["ruleIndex"]] for result in (first, second)] == ["plan", "cycle"]
    assert (first["ruleId"], first["level"]) == ("plan", "error")
    assert first["message"]["text"] == f"{NASTY}\nRemedy: mend it"
    assert re.fullmatch(r"[\w./%~-]+", place["artifactLocation"]["uri"], re.ASCII)
    assert (unquote(place["artifactLocation"]["uri"]), place["region"]) == (FILE, {"startLine": 7})


def test_sarif_names_a_folder_from_the_root_by_its_address() -> None:
    report = Report("/dags", (Finding(Place("/dags/a.py", 2), "plan", "no", "yes"),))

    (result,) = json.loads(to_sarif(report))["runs"][0]["results"]

    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "file:///dags/a.py"


def test_junit_is_xml_with_a_failed_test_for_each_finding() -> None:
    suites = fromstring(to_junit(FOUND).encode())  # noqa: S314  our own

    (suite,) = suites
    first, second = suite
    assert {name: suite.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "2", "failures": "2", "errors": "0",
    }  # fmt: skip
    assert (first.get("classname"), first.get("name")) == (FILE, "plan, line 7")
    shown = NASTY.replace("\x07", "\\x07").replace("\ud800", "\\ud800")
    assert first[0].get("message") == shown
    assert shown.replace("\r\n", "\n") in (first[0].text or "").replace("\r\n", "\n")
    assert second[0].get("type") == "cycle"


def test_junit_has_a_test_that_passed_when_nothing_is_found() -> None:
    (suite,) = fromstring(to_junit(CLEAN).encode())  # noqa: S314  our own

    assert (suite.get("tests"), suite.get("failures"), [list(case) for case in suite]) == ("1", "0", [[]])


def test_sarif_of_a_clean_folder_says_that_there_is_nothing() -> None:
    assert json.loads(to_sarif(CLEAN))["runs"][0]["results"] == []


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_is_offered_by_the_command_and_can_be_printed_anywhere(name: str) -> None:
    assert name in command._FORMATS
    assert len(command._FORMATS) == len(FORMATS)
    assert FORMATS[name](FOUND).encode(errors="backslashreplace")
