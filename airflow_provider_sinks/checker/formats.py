"""Writes a report for the programs that show findings: GitHub's annotations, SARIF, JUnit.

Messages quote what users wrote, so they may hold anything: each format says how it is kept from being taken
for a part of the format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, tostring

from airflow_provider_sinks import __version__
from airflow_provider_sinks.checker.finding import Finding
from airflow_provider_sinks.checker.report import Report

_TOOL = "airflow-provider-sinks"
_SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_github(report: Report) -> str:
    """Return workflow commands that GitHub shows beside the lines of a change, then the summary."""
    return "\n".join([*map(_annotation, report.findings), report.summary])


def to_sarif(report: Report) -> str:
    """Return SARIF 2.1.0, which code scanning reads."""
    rules = sorted({finding.rule for finding in report.findings})
    driver = {"name": _TOOL, "version": __version__, "rules": [{"id": rule} for rule in rules]}
    results = [_result(finding, rules.index(finding.rule)) for finding in report.findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def to_junit(report: Report) -> str:
    """Return JUnit's XML: each finding is a test that failed; without any, one test passed."""
    tests, failures = str(len(report.findings) or 1), str(len(report.findings))
    counts = {
        "name": _TOOL,
        "tests": tests,
        "failures": failures,
        "errors": "0",
        "time": f"{report.seconds:.3f}",
    }
    suites = Element("testsuites", counts)
    suite = SubElement(suites, "testsuite", counts)
    for finding in report.findings:
        named = {"classname": _xml(finding.place.file), "name": f"{finding.rule}, line {finding.place.line}"}
        case = SubElement(suite, "testcase", {**named, "file": _xml(finding.place.file), "time": "0"})
        failure = SubElement(case, "failure", {"type": finding.rule, "message": _xml(finding.what)})
        failure.text = _xml(str(finding))
    if not report.findings:
        SubElement(
            suite, "testcase", {"classname": _xml(report.folder), "name": _xml(report.summary), "time": "0"}
        )
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(suites, encoding="unicode")


FORMATS: Mapping[str, Callable[[Report], str]] = {
    "text": Report.to_text,
    "json": Report.to_json,
    "github": to_github,
    "sarif": to_sarif,
    "junit": to_junit,
}
"""By the names that the command takes."""


def _annotation(finding: Finding) -> str:
    file, title = _property(finding.place.file), _property(finding.rule)
    message = _data(f"{finding.what}\nRemedy: {finding.remedy}")
    return f"::error file={file},line={finding.place.line},title={title}::{message}"


def _data(text: str) -> str:
    """Keep a text on its one line; any other sign may stand behind the last colons."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Keep a text from ending its property."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _result(finding: Finding, rule_index: int) -> dict[str, object]:
    place = {
        "artifactLocation": {"uri": _uri(finding.place.file)},
        "region": {"startLine": finding.place.line},
    }
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule_index,
        "level": "error",
        "message": {"text": f"{finding.what}\nRemedy: {finding.remedy}"},
        "locations": [{"physicalLocation": place}],
    }


def _uri(file: str) -> str:
    """Return the address of a file: relative, unless the folder was named from the root."""
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix(), errors="surrogateescape")


def _xml(text: str) -> str:
    """Write signs that XML has no way to hold as Python does."""
    return _NOT_IN_XML.sub(lambda sign: ascii(sign[0])[1:-1], text)
