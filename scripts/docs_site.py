"""What the site of the documentation has beside the pages, as a hook of MkDocs: one text for both readers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

_README = Path(__file__).parent.parent / "README.md"
_FROM_ROOT = re.compile(r"\]\((?!docs/|https?:|#)")
_TO_REPOSITORY = re.compile(r"\[([^\]]+)\]\(\.\./[^)]*\)")


def on_files(files: Files, *, config: Any) -> Files:
    """Add ``index.md``: the README, with links as they are inside of ``docs/``. Called once per build."""
    text = _FROM_ROOT.sub("](../", _README.read_text(encoding="utf-8")).replace("](docs/", "](")
    files.append(File.generated(config, "index.md", content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Lead links to the README to that page, and take the links off other files. Called for each page."""
    return _TO_REPOSITORY.sub(r"\1", markdown.replace("](../README.md", "](index.md"))
