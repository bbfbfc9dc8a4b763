"""The wheel: its packages are all there, and the links of its page lead somewhere, or are none."""

from __future__ import annotations

import re
import runpy
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
URL = "https://forge.example/team/sinks"
RELATIVE = re.compile(r"\]\((?!https?://|mailto:|#)")


@pytest.fixture(scope="module")
def setup() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "setup.py"), run_name="setup")


@pytest.mark.parametrize(
    ("text", "url", "wanted"),
    [
        ("see [the page](docs/a.md).", "", "see the page."),
        ("see [the page](docs/a.md).", URL, f"see [the page]({URL}/blob/v1.2/docs/a.md)."),
        ("![A log](docs/a.png)", "", "A log"),
        ("![A log](docs/a.png)", URL, f"![A log]({URL}/raw/v1.2/docs/a.png)"),
        ("[out](https://a.example/b), [in](#c)", "", "[out](https://a.example/b), [in](#c)"),
        ("`list[int]` (as it is)", URL, "`list[int]` (as it is)"),
    ],
)
def test_a_link_leads_to_the_project_or_is_plain_text(
    setup: dict[str, Any], text: str, url: str, wanted: str
) -> None:
    assert setup["page"](text, url, "1.2") == wanted


@pytest.mark.parametrize("url", ["", URL])
def test_no_link_of_the_readme_is_left_relative(setup: dict[str, Any], url: str) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    assert RELATIVE.search(text)
    assert not RELATIVE.search(setup["page"](text, url, "1.2"))


def test_the_addresses_are_those_of_the_version(setup: dict[str, Any]) -> None:
    assert setup["addresses"]("", "1.2") == {}
    assert setup["addresses"](URL, "1.2")["Changelog"] == f"{URL}/blob/v1.2/CHANGELOG.md"


def test_what_is_no_address_is_refused(setup: dict[str, Any]) -> None:
    assert setup["project_url"](f"{URL}/") == URL
    for wrong in ("forge.example/team", "https://", "file:///x", "https:// x"):
        with pytest.raises(SystemExit, match="PROJECT_URL is no address"):
            setup["project_url"](wrong)


def test_every_package_is_named_for_the_wheel() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    named = set(project["tool"]["setuptools"]["packages"]) - {"airflow_provider_sinks.spark_jobs"}
    folders = (file.parent for file in (ROOT / "airflow_provider_sinks").rglob("__init__.py"))
    data = "airflow_provider_sinks.cli.connector_project."  # another project's, which is only written down

    found = {".".join(folder.relative_to(ROOT).parts) for folder in folders}
    assert {name for name in found if not name.startswith(data)} == named


def test_a_requirement_has_an_upper_bound_unless_its_releases_break_nothing() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]

    open_above = {re.split(r"[\[>]", one)[0] for one in needed if "<" not in one and "==" not in one}
    assert open_above == {"airflow-provider-sinks", "cryptography", "fsspec", "pyarrow"}
