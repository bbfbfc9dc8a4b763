"""A YARN resource manager, by its REST API: which applications there are, what became of one, and its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import requests
from requests.auth import AuthBase

from airflow_provider_sinks.core.errors import AuthenticationError, UnavailableError
from airflow_provider_sinks.core.yarn import ALIVE, Application, AppState, FinalStatus

_TIMEOUT_SECONDS = 10.0
_LONGEST_ANSWER = 300
_DENIED = (requests.codes.unauthorized, requests.codes.forbidden)


class YarnClient:
    """Asks one resource manager. Each call makes one request and keeps nothing.

    :param url: such as ``http://manager:8088``; a standby manager redirects to the active one.
    :param auth: how to prove who we are, where the manager asks for it.
    """

    def __init__(self, url: str, auth: AuthBase | None = None) -> None:
        self.url = url.rstrip("/")
        self._auth = auth

    def version(self) -> str:
        """Return what the manager says of itself, such as ``Hadoop 3.4.2, STARTED``."""
        info = (self._call("GET", "info") or {}).get("clusterInfo") or {}
        return (
            f"Hadoop {info.get('hadoopVersion', 'of unknown version')}, {info.get('state', 'state unknown')}"
        )

    def application(self, app_id: str) -> Application | None:
        """Return what the manager says of an application; ``None`` when it does not know it."""
        answer = self._call("GET", f"apps/{app_id}")
        return None if answer is None else _application(answer["app"], self.url)

    def alive(self, tag: str) -> tuple[Application, ...]:
        """Return the applications with a tag that are not over.

        :param tag: in lower case.
        """
        return self.tagged(tag, ALIVE)

    def tagged(self, tag: str, states: Iterable[AppState] = AppState) -> tuple[Application, ...]:
        """Return the applications with a tag that the manager still knows.

        :param tag: in lower case.
        """
        wanted = {"applicationTags": tag, "states": ",".join(states)}
        answer = self._call("GET", "apps", params=wanted)
        # Without applications the manager answers {"apps": null}, {"apps": {}} or {"apps": []}.
        apps = (answer or {}).get("apps") or {}
        found = apps.get("app", []) if isinstance(apps, Mapping) else []
        return tuple(_application(app, self.url) for app in found)

    def kill(self, app_id: str) -> None:
        """End an application; one that is over, or unknown, stays as it is. Returns before it has ended."""
        self._call("PUT", f"apps/{app_id}/state", json={"state": AppState.KILLED.value})

    def _call(self, method: str, path: str, **arguments: Any) -> dict[str, Any] | None:
        """Return the answer, or ``None`` when there is no such thing."""
        url = f"{self.url}/ws/v1/cluster/{path}"
        try:
            answer = requests.request(
                method,
                url,
                auth=self._auth,
                timeout=_TIMEOUT_SECONDS,
                headers={"Accept": "application/json"},
                **arguments,
            )
        except requests.RequestException as error:
            raise self._unavailable(f"{type(error).__name__}: {error}") from error
        if answer.status_code == requests.codes.not_found:
            return None
        if answer.status_code in _DENIED:
            raise AuthenticationError(
                f"the YARN resource manager at {self.url} refused us",
                f"HTTP {answer.status_code} to {method} {path}: {answer.text[:_LONGEST_ANSWER]}",
                "Give the Spark connection a keytab and a principal, or the operator a yarn_rm_auth.",
            )
        return self._read(answer, f"{method} {path}")

    def _read(self, answer: requests.Response, what: str) -> dict[str, Any]:
        text = f"HTTP {answer.status_code} to {what}: {answer.text[:_LONGEST_ANSWER]}"
        if not answer.ok:
            raise self._unavailable(text)
        try:
            content = answer.json()
        except ValueError:
            raise self._unavailable(text) from None
        if not isinstance(content, dict):
            raise self._unavailable(text)
        return content

    def _unavailable(self, detail: str) -> UnavailableError:
        return UnavailableError(
            f"the YARN resource manager at {self.url} cannot be asked",
            detail,
            "Check yarn_resourcemanager_webapp_address in the extra of the Spark connection.",
        )


def _application(app: Mapping[str, Any], url: str) -> Application:
    try:
        return Application(
            id=app["id"],
            state=AppState(app["state"]),
            final_status=FinalStatus(app["finalStatus"]),
            diagnostics=str(app.get("diagnostics") or "").strip(),
            tracking_url=str(app.get("trackingUrl") or f"{url}/cluster/app/{app['id']}"),
            tags=frozenset(filter(None, str(app.get("applicationTags") or "").lower().split(","))),
        )
    except (KeyError, ValueError) as error:
        raise UnavailableError(
            f"the YARN resource manager at {url} says something that is not understood",
            f"{type(error).__name__}: {error}",
        ) from error
