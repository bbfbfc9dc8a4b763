"""Airflow's own REST API: what a task may not do through the Task SDK, done as a user of its own.

Each call is one request with a time limit. Redirects are not followed: credentials go to the address of the
connection and nowhere else. A token that ran out is renewed once where there is a password.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self
from urllib.parse import quote

import requests

from airflow_provider_sinks.clients.own_headers import OwnHeaders
from airflow_provider_sinks.core.connection.airflow_account import AirflowAccount
from airflow_provider_sinks.core.errors import AuthenticationError, SinkError, UnavailableError

TIMEOUT_SECONDS = 10.0
_PAGE = 100
_LONGEST_ANSWER = 500
_MISSING, _CONFLICT = 404, 409


class ApiAnswerError(SinkError):
    """Airflow understood the request and said no.

    :param status: HTTP's number for it, such as 404 or 409.
    """

    def __init__(self, primary: str, detail: str = "", hint: str = "", status: int = 0) -> None:
        super().__init__(primary, detail, hint)
        self.status = status

    @property
    def is_missing(self) -> bool:
        """There is no such thing, or this user may not know of it."""
        return self.status == _MISSING

    @property
    def is_conflict(self) -> bool:
        """It is there already, or is being changed by somebody else."""
        return self.status == _CONFLICT


class AirflowApi:
    """One user of one Airflow. Use it as a context manager. Not for several threads.

    :param account: where, and who.
    :param timeout_seconds: how long one answer may take.
    """

    def __init__(self, account: AirflowAccount, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self.account = account
        self._timeout_seconds = timeout_seconds
        self._session = requests.Session()
        self._session.auth = OwnHeaders()
        self._token = account.token

    def call(self, method: str, path: str, body: object = None, **query: object) -> Any:
        """Make one request and return the answer's JSON, or ``None`` where the answer is empty.

        :param path: below ``/api/v2/``; each part quoted by the caller.
        :param query: a list repeats its key.
        :raises ApiAnswerError: with the status, when Airflow says no.
        :raises AuthenticationError: the credentials were refused, or do not suffice.
        :raises UnavailableError: no answer in time, or an answer that says nothing.
        """
        what = f"{method} /api/v2/{path}"
        had_token = bool(self._token)
        answer = self._ask(method, f"api/v2/{path}", body, query)
        if _is_about_token(answer) and had_token and self.account.password:
            self._token = ""
            answer = self._ask(method, f"api/v2/{path}", body, query)
        return self._read(answer, what)

    def find(self, path: str, **query: object) -> Any | None:
        """Return what is there, or ``None`` when there is no such thing."""
        try:
            return self.call("GET", path, **query)
        except ApiAnswerError as error:
            if error.is_missing:
                return None
            raise

    def all(self, path: str, key: str, **query: object) -> Iterator[dict[str, Any]]:
        """Yield the entries of a list, page by page.

        :param key: where a page has its entries, such as ``assets``.
        """
        seen = 0
        while True:
            page = self.call("GET", path, limit=_PAGE, offset=seen, **query)
            yield from page[key]
            seen += len(page[key])
            if not page[key] or seen >= page["total_entries"]:
                return

    def close(self) -> None:
        """Drop the connections."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, method: str, path: str, body: object, query: dict[str, Any]) -> requests.Response:
        if not self._token:
            self._log_in()
        headers = {"Authorization": f"Bearer {self._token}"}
        return self._request(method, path, json=body, params=query, headers=headers)

    def _log_in(self) -> None:
        account = self.account
        body = {"username": account.login, "password": account.password}
        answer = self._request("POST", "auth/token", json=body)
        token = (self._read(answer, "POST /auth/token") or {}).get("access_token")
        if not isinstance(token, str) or not token:
            raise self._unavailable("POST /auth/token gave no token")
        self._token = token

    def _request(self, method: str, path: str, **arguments: Any) -> requests.Response:
        try:
            return self._session.request(
                method,
                f"{self.account.url}/{path}",
                timeout=self._timeout_seconds,
                allow_redirects=False,
                **arguments,
            )
        except requests.RequestException as error:
            raise self._unavailable(f"{type(error).__name__}: {error}") from None

    def _read(self, answer: requests.Response, what: str) -> Any:
        said = f"HTTP {answer.status_code} to {what}: {answer.text[:_LONGEST_ANSWER]}"
        if _is_about_token(answer):
            raise self._denied(f"Airflow at {self.account.url} refused the credentials", said)
        if answer.status_code == requests.codes.forbidden:
            who = f'the user of connection "{self.account.conn_id}"'
            raise self._denied(f"{who} may not do this in Airflow at {self.account.url}", said)
        if not 200 <= answer.status_code < 500 or 300 <= answer.status_code < 400 or _is_passing(answer):
            raise self._unavailable(said)
        if not answer.ok:
            raise ApiAnswerError(f"Airflow at {self.account.url} said no", said, status=answer.status_code)
        try:
            return answer.json() if answer.content else None
        except ValueError:
            raise self._unavailable(said) from None

    def _denied(self, primary: str, detail: str) -> AuthenticationError:
        hint = (
            f'Correct login and password, or the token, of connection "{self.account.conn_id}", or the role.'
        )
        return AuthenticationError(primary, detail, hint)

    def _unavailable(self, detail: str) -> UnavailableError:
        return UnavailableError(
            f"Airflow at {self.account.url} cannot be asked",
            detail,
            f'Check host and port of connection "{self.account.conn_id}", and that the API server is up.',
        )


def quoted(part: str) -> str:
    """Return an id as a part of a path."""
    return quote(part, safe="")


def _is_passing(answer: requests.Response) -> bool:
    """Return whether the same request may be answered a moment later: it came too late, early or often."""
    codes = requests.codes
    return answer.status_code in (codes.request_timeout, codes.too_early, codes.too_many_requests)


def _is_about_token(answer: requests.Response) -> bool:
    """Return whether the token is no good any more: 401 when it ran out, 403 when its key has changed."""
    denied, forbidden = requests.codes.unauthorized, requests.codes.forbidden
    is_invalid = answer.status_code == forbidden and "Invalid JWT token" in answer.text
    return answer.status_code == denied or is_invalid
