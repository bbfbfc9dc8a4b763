"""The page of each operator lists its parameters as its docstring tells them, with their defaults."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "airflow_provider_sinks"
PAGES = {
    "alter_connection_restart": PACKAGE / "operators" / "alter_connection_restart.py",
    "validate_connection": PACKAGE / "operators" / "validate_connection.py",
    "check_topics": PACKAGE / "sensors" / "check_topics.py",
    "submit_sink_job": PACKAGE / "operators" / "submit_sink_job.py",
}
PARAM = re.compile(r":param (\w+): (.*?)(?=\n\s*:param |\Z)", re.DOTALL)


def method(node: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    functions = (item for item in node.body if isinstance(item, ast.FunctionDef))
    return next((function for function in functions if function.name == name), None)


def operator(file: Path) -> ast.ClassDef:
    classes = (node for node in ast.parse(file.read_text()).body if isinstance(node, ast.ClassDef))
    return next(node for node in classes if method(node, "execute"))


def defaults(node: ast.ClassDef) -> dict[str, str]:
    """Return the default of each parameter as it is written; ``**spark`` has none."""
    start = method(node, "__init__")
    assert start is not None
    keyword_only = zip(start.args.kwonlyargs, start.args.kw_defaults, strict=True)
    return {argument.arg: ast.unparse(default) if default else "" for argument, default in keyword_only}


def table(file: Path) -> str:
    """Return the rows of the table of parameters."""
    node = operator(file)
    given = defaults(node)
    rows = []
    for name, text in PARAM.findall(ast.get_docstring(node) or ""):
        default = f"`{given[name]}`" if given.get(name) else ""
        what = re.sub(r":\w+:`([^`]+)`", r"`\1`", " ".join(text.split()).replace("``", "`"))
        rows.append(f"| `{name}` | {default} | {what} |")
    return "\n".join(["| parameter | default | |", "|---|---|---|", *rows])


@pytest.mark.parametrize("page", PAGES)
def test_the_page_of_an_operator_lists_its_parameters(page: str) -> None:
    assert table(PAGES[page]) in (ROOT / "docs" / f"{page}.md").read_text()
