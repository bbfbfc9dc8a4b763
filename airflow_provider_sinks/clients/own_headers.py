"""Requests with the headers that we give them, and no others."""

from __future__ import annotations

from requests import PreparedRequest
from requests.auth import AuthBase


class OwnHeaders(AuthBase):
    """The ``auth`` of a session that has none of requests' own.

    Without any, requests looks for the host in the worker's ``~/.netrc``, puts that password into
    ``Authorization`` in the place of our token, and so gives it to a server that it may not be for.
    """

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Return the request as it is."""
        return request
