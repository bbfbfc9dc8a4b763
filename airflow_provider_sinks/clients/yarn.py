"""A YARN resource manager, by its REST API: which applications there are, what became of one, and its end."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase

from airflow_provider_sinks.clients.own_headers import OwnHeaders
from airflow_provider_sinks.core.checks.addresses import forbidden
from airflow_provider_sinks.core.errors import (
    AuthenticationError,
    ConfigurationError,
    Problem,
    UnavailableError,
)
from airflow_provider_sinks.core.launch.yarn import ALIVE, Application, AppState, FinalStatus

_TIMEOUT_SECONDS = 10.0
_LONGEST_WORD = 40
_LONGEST_MESSAGE = 300
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
        version, state = info.get("hadoopVersion", "of unknown version"), info.get("state", "state unknown")
        return f"Hadoop {str(version)[:_LONGEST_WORD]}, {str(state)[:_LONGEST_WORD]}"

    def application(self, app_id: str) -> Application | None:
        """Return what the manager says of an application; ``None`` when it does not know it."""
        answer = self._call("GET", f"apps/{app_id}")
        return None if answer is None else _application(answer["app"], self.url)

    def alive(self, tag: str) -> tuple[Application, ...]:
        """Return the applications with a tag that are not over.

        :param tag: in lower case.
        """
        return self.tagged(tag, ALIVE)

    def running(self) -> tuple[Application, ...]:
        """Return all applications that are not over."""
        return self._listed({"states": ",".join(ALIVE)})

    def tagged(self, tag: str, states: Iterable[AppState] = AppState) -> tuple[Application, ...]:
        """Return the applications with a tag that the manager still knows.

        :param tag: in lower case.
        """
        return self._listed({"applicationTags": tag, "states": ",".join(states)})

    def _listed(self, wanted: Mapping[str, str]) -> tuple[Application, ...]:
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
            with requests.Session() as session:
                for scheme in ("http://", "https://"):
                    session.mount(scheme, _Guard())
                answer = session.request(
                    method,
                    url,
                    auth=self._auth or OwnHeaders(),
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
                f"HTTP {answer.status_code} to {method} {path}",
                "Give the Spark connection a keytab and a principal, or the operator a yarn_rm_auth.",
            )
        return self._read(answer, f"{method} {path}")

    def _read(self, answer: requests.Response, what: str) -> dict[str, Any]:
        text = f"HTTP {answer.status_code} to {what}{_message(answer)}"
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


class _Guard(HTTPAdapter):
    """Sends nothing to a machine's own metadata service, also where an answer redirects there."""

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        host = urlsplit(request.url or "").hostname
        for address in _addresses(str(host or "")):
            reason = forbidden(address)
            if reason:
                problem = Problem("yarn_resourcemanager_webapp_address", f"{address} is refused: {reason}")
                raise ConfigurationError("this is not the address of a YARN resource manager", [problem])
        return super().send(request, *args, **kwargs)


def _addresses(host: str) -> set[str]:
    """Return what a name stands for; one that stands for nothing fails when it is used."""
    try:
        return {str(where[0]) for *_, where in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        return set()


def _message(answer: requests.Response) -> str:
    """Return what a manager says about an error; what anything else answers is not repeated."""
    try:
        said = answer.json()["RemoteException"]["message"]
    except (ValueError, KeyError, TypeError):
        return ""
    return f": {str(said)[:_LONGEST_MESSAGE]}"


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
