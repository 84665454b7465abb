"""What can be wrong with an answer: each fault turns an honest answer into the one that is sent."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from email.utils import formatdate
from typing import Final

from tests.lab.answers import Answer, Ending, Request, error_answer

FOREVER: Final = 1 << 62

Condition = Callable[[Request], bool]
Change = Callable[[Answer], Answer]


@dataclass(frozen=True)
class Fault:
    """Change the answers to the requests that match: `times` of them, after the first `after`."""

    what: Change
    when: Condition = lambda request: request.is_blob_read
    times: int = 1
    after: int = 0


def reading(name: str) -> Condition:
    """Matches a read of one blob."""
    return lambda request: request.is_blob_read and request.name == name


def listing(request: Request) -> bool:
    """Matches List Blobs."""
    return request.is_list


def error(
    status: int, code: str, message: str = "Scripted.", *, retry_after: str = "", detail: str = ""
) -> Change:
    """An error of the service instead of the answer."""
    answer = error_answer(status, code, message, detail)
    return lambda _: answer.with_headers(Retry_After=retry_after) if retry_after else answer


def busy(retry_after: str = "") -> Change:
    """503 as a throttled account sends it."""
    return error(503, "ServerBusy", "The server is busy.", retry_after=retry_after)


def busy_until_date(wait_s: float) -> Change:
    """503 with an HTTP date in Retry-After, `wait_s` from the moment of the answer, in whole seconds."""

    def change(answer: Answer) -> Answer:
        return busy(formatdate(time.time() + wait_s, usegmt=True))(answer)

    return change


def too_many_requests(retry_after: str = "") -> Change:
    """429."""
    return error(429, "TooManyRequests", retry_after=retry_after)


def server_error() -> Change:
    """500 as the service words it."""
    return error(500, "InternalError", "The server encountered an internal error. Please retry the request.")


def unauthorized() -> Change:
    """401, what an expired token gets."""
    return lambda _: error_answer(
        401, "InvalidAuthenticationInfo", "Lifetime validation failed."
    ).with_headers(WWW_Authenticate="Bearer authorization_uri=https://login.invalid/t/oauth2/authorize")


def forbidden(code: str, detail: str = "") -> Change:
    """403 with one of the service's codes."""
    return error(403, code, "This request is not authorized to perform this operation.", detail=detail)


def gone() -> Change:
    """404 for a blob that the listing still has."""
    return error(404, "BlobNotFound", "The specified blob does not exist.")


def reset_before_headers() -> Change:
    """A TCP reset instead of an answer."""
    return lambda answer: replace(answer, headless=True, ending=Ending.RESET)


def reset_mid_body(sent_bytes: int) -> Change:
    """A TCP reset after so many bytes of the body."""
    return lambda answer: replace(answer, send_bytes=sent_bytes, ending=Ending.RESET)


def close_mid_body(sent_bytes: int) -> Change:
    """An orderly close after so many bytes of the body: some clients take that for the end."""
    return lambda answer: replace(answer, send_bytes=sent_bytes, ending=Ending.CLOSE)


def half_range() -> Change:
    """Half of the range, 206, and a Content-Range that says so honestly."""

    def change(answer: Answer) -> Answer:
        body = answer.body[: (len(answer.body) + 1) // 2]
        first, _, total = _content_range(answer)
        return _ranged(replace(answer, body=body), first, first + len(body) - 1, total)

    return change


def wrong_start(by_bytes: int) -> Change:
    """A Content-Range that says the bytes are from elsewhere."""

    def change(answer: Answer) -> Answer:
        first, last, total = _content_range(answer)
        return _ranged(answer, first + by_bytes, last + by_bytes, total)

    return change


def wrong_total(by_bytes: int) -> Change:
    """A Content-Range with another size of the whole blob."""

    def change(answer: Answer) -> Answer:
        first, last, total = _content_range(answer)
        return _ranged(answer, first, last, total + by_bytes)

    return change


def whole_instead_of_range() -> Change:
    """200 with the bytes of the range: what a proxy does that does not know ranges."""
    return lambda answer: replace(answer.without_headers("Content-Range"), status=200)


def wrong_length(by_bytes: int) -> Change:
    """A Content-Length that differs from the body; the connection closes after the body."""
    return lambda answer: replace(
        answer.with_headers(Content_Length=str(len(answer.body) + by_bytes)), ending=Ending.CLOSE
    )


def other_etag(etag: str) -> Change:
    """Bytes of another version, whatever If-Match said."""
    return lambda answer: answer.with_headers(ETag=f'"{etag}"')


def slow(bytes_per_s: float) -> Change:
    """A body at a fixed pace."""
    return lambda answer: replace(answer, bytes_per_s=bytes_per_s)


def never() -> Change:
    """No answer at all; the connection stays open."""
    return lambda answer: replace(answer, silent=True)


def chunked() -> Change:
    """The same body in chunked transfer encoding, without Content-Length."""
    return lambda answer: replace(answer.without_headers("Content-Length"), chunked=True)


def compressed_on_the_way() -> Change:
    """What a proxy makes of a range: gzip, with the range's own Content-Range."""

    def change(answer: Answer) -> Answer:
        body = gzip.compress(answer.body)
        return replace(answer.with_headers(Content_Encoding="gzip", Content_Length=str(len(body))), body=body)

    return change


def header_bomb(headers: int = 2000, value_bytes: int = 200) -> Change:
    """More headers than any client should keep."""
    bomb = {f"x-ms-meta-{number}": "b" * value_bytes for number in range(headers)}
    return lambda answer: replace(answer, headers=dict(answer.headers) | bomb)


def skewed_date(by_s: float) -> Change:
    """A clock that is off."""
    return lambda answer: answer.with_headers(Date=formatdate(time.time() + by_s, usegmt=True))


def _content_range(answer: Answer) -> tuple[int, int, int]:
    span, _, total = answer.headers["Content-Range"].removeprefix("bytes ").partition("/")
    first, _, last = span.partition("-")
    return int(first), int(last), int(total)


def _ranged(answer: Answer, first: int, last: int, total: int) -> Answer:
    return answer.with_headers(
        Content_Range=f"bytes {first}-{last}/{total}", Content_Length=str(len(answer.body))
    )
