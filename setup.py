"""What the wheel says of itself: its page, and the addresses of the project.

Where this project is published is known to who publishes it, and stands nowhere in it. ``PROJECT_URL`` in the
environment names it. Then the wheel has the addresses of the project, and the links of its page lead there,
to the files of this version. Without it there is no address to name: the links of the page become plain text,
since beside a wheel lie none of the files that they would lead to. The source distribution has them all.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from setuptools import setup

_HERE = Path(__file__).parent
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?!https?://|mailto:|#)(?P<path>[^)\s]+)\)")


def project_url(given: str) -> str:
    """Return the address of the project without a slash at its end, or an empty text."""
    if given and not re.fullmatch(r"https?://[^\s/]+\S*", given):
        raise SystemExit(f"PROJECT_URL is no address: {given!r}")
    return given.rstrip("/")


def page(text: str, url: str, version: str) -> str:
    """Return the README as it can be read beside a wheel."""

    def link(found: re.Match[str]) -> str:
        text, kind = found["text"], "raw" if found["image"] else "blob"
        return f"{found['image']}[{text}]({url}/{kind}/v{version}/{found['path']})" if url else text

    return _LINK.sub(link, text)


def addresses(url: str, version: str) -> dict[str, str]:
    """Return the addresses of the project by the names that package indexes know."""
    if not url:
        return {}
    files = f"{url}/blob/v{version}"
    return {
        "Homepage": url,
        "Documentation": f"{files}/docs/getting-started.md",
        "Changelog": f"{files}/CHANGELOG.md",
        "Issues": f"{url}/issues",
    }


def _version() -> str:
    text = (_HERE / "airflow_provider_sinks" / "__init__.py").read_text(encoding="utf-8")
    (version,) = re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    return str(version)


if __name__ == "__main__":
    URL = project_url(os.environ.get("PROJECT_URL", ""))
    setup(
        long_description=page((_HERE / "README.md").read_text(encoding="utf-8"), URL, _version()),
        long_description_content_type="text/markdown",
        project_urls=addresses(URL, _version()),
    )
