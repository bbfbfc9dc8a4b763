# /// script
# requires-python = ">=3.11"
# dependencies = ["httpx", "playwright"]
# ///
"""Takes the pictures of the docs from a running Airflow, in headless Chromium (Debian's ``chromium``).

    make demo KEEP=1        # prints the address, the user and the password
    uv run scripts/screenshots.py <address> <user> <password> docs/images <name>=<path of the page> ...

A path such as ``/dags/pageviews_enriched`` is what the browser's address bar shows; with ``#Trigger`` behind
it, the button of that name is pressed. Before a picture is taken, a page gets time to draw itself.
"""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from playwright.sync_api import sync_playwright

_CHROMIUM = "/usr/bin/chromium"
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
_VIEW = {"width": 1440, "height": 900}
_DRAWN_MILLISECONDS = 8_000


def main(address: str, user: str, password: str, folder: str, *pages: str) -> None:
    """Log in by the API, and take a picture of each page."""
    body = {"username": user, "password": password}
    answer = httpx.post(f"{address}/auth/token", json=body, timeout=30).raise_for_status()
    cookie = {"name": "_token", "value": answer.json()["access_token"], "path": "/"}
    with (
        sync_playwright() as driver,
        driver.chromium.launch(executable_path=_CHROMIUM, args=_FLAGS) as browser,
    ):
        context = browser.new_context(viewport=_VIEW)
        context.add_cookies([{**cookie, "domain": str(urlsplit(address).hostname)}])
        for page in pages:
            name, place = page.split("=", 1)
            path, _, button = place.partition("#")
            tab = context.new_page()
            tab.goto(f"{address}{path}", wait_until="networkidle")
            tab.wait_for_timeout(_DRAWN_MILLISECONDS)
            if button:
                tab.get_by_role("button", name=button).first.click()
                tab.wait_for_timeout(_DRAWN_MILLISECONDS)
            tab.screenshot(path=Path(folder, f"{name}.png"))
            print(f"{name}: {tab.url}")
            tab.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
