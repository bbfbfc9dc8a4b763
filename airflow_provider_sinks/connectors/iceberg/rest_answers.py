"""What a REST catalog's answer says of an error. An address may lead to any server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sinks.core.wording import one_line

if TYPE_CHECKING:
    from requests import RequestException, Response


def answered(error: BaseException) -> str | None:
    """Return what is told of an error that came by HTTP, on one line; ``None`` of every other.

    Only what has the form of the catalogs' API: type and message. What else some server answers may be for
    nobody's eyes.
    """
    from pydantic import ValidationError
    from requests import HTTPError, RequestException, TooManyRedirects

    from airflow_provider_sinks.connectors.iceberg.bounded_answers import LongAnswerError

    match error, error.__cause__:
        case (_, HTTPError(response=found)) if found is not None:
            return _said(found)
        case (TooManyRedirects(response=found), _) if found is not None:
            return f"HTTP {found.status_code}: it leads on to another address, which is not followed"
        case (LongAnswerError(), _):
            return one_line(str(error))
        case (RequestException(), _):
            return _lost(error)
        case (ValidationError(), _):
            return "no answer as a catalog gives it"
    return None


def _said(answer: Response) -> str:
    from pydantic import ValidationError
    from pyiceberg.catalog.rest.response import ErrorResponse, OAuthErrorResponse

    status = f"HTTP {answer.status_code}"
    try:
        error = ErrorResponse.model_validate_json(answer.text).error
    except ValidationError:
        try:
            refusal = OAuthErrorResponse.model_validate_json(answer.text)
        except ValidationError:
            return f"{status}, and no error as a catalog tells it"
        return one_line(": ".join(filter(None, [refusal.error, refusal.error_description]))) + f" ({status})"
    return one_line(f"{error.type}: {error.message}") + f" ({status})"


def _lost(error: RequestException) -> str:
    """Return why there was no answer; what came in its place, such as a greeting, is not shown."""
    from requests import exceptions
    from urllib3.exceptions import MaxRetryError

    name = type(error).__name__
    is_way = isinstance(error, exceptions.SSLError | exceptions.Timeout) or (
        isinstance(error, exceptions.ConnectionError)
        and any(isinstance(one, MaxRetryError) for one in error.args)
    )
    return f"{name}: {one_line(str(error))}" if is_way else name
