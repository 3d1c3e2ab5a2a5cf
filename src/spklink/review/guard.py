"""Who is let in: the browser of the person who started the page, and nobody else.

The server listens on this machine only. That keeps other machines out, but not other pages in the
same browser, nor names that somebody points at this machine (DNS rebinding). So every request must
name this machine as its host and carry the token that only the printed address has; one that
changes something must also come from our own page, by a header that no form of another page can
send. What is refused gets a line of text and reaches nothing behind this door.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OURS = re.compile(r"(?:127\.0\.0\.1|localhost)(?::[0-9]{1,5})?")  # any port: there are tunnels
LARGEST = 64 << 10  # bytes of a request's body: a decision has a few hundred
FORM = "application/x-www-form-urlencoded"
SAFE_METHODS = frozenset({"GET", "HEAD"})
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
}


class Guard:
    """All requests go through here first."""

    def __init__(self, app: App, token: str) -> None:
        self.app, self.token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":  # nothing of ours speaks anything else
            return await send({"type": "websocket.close", "code": 1008})
        refused = self._refusal(scope)
        if refused is not None:
            return await _refuse(send, *refused)
        body = await _body(receive) if scope["method"] not in SAFE_METHODS else b""
        if body is None:
            return await _refuse(send, 413, "That is more than a decision needs.")
        told = False

        async def once() -> Message:
            nonlocal told
            if told or scope["method"] in SAFE_METHODS:
                return await receive()
            told = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": _completed(message.get("headers", []))}
            await send(message)

        inside = {**scope, "path": scope["path"][len(self.token) + 1 :] or "/", "raw_path": None}
        await self.app(inside, once, with_headers)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Status and reason; None for those who may come in."""
        headers = _once_each(scope["headers"])
        if headers is None:
            return 400, "A header was sent twice."
        host = headers.get("host", "")
        if not OURS.fullmatch(host):
            return 421, "This page is on 127.0.0.1 only."
        if not self._knows_token(scope["path"]):
            return 403, "Not the address that spklink review printed: it holds a token."
        fetched = headers.get("sec-fetch-site", "same-origin")
        if scope["method"] in SAFE_METHODS:
            by_hand = headers.get("sec-fetch-mode") == "navigate"
            if fetched not in ("same-origin", "none") and not by_hand:
                return 403, "Another page asked for this."
            return None
        if scope["method"] != "POST":
            return 405, "GET and POST only."
        own = headers.get("origin") == f"http://{host}" and fetched == "same-origin"
        if not own or headers.get("hx-request") != "true":
            return 403, "Another page asked for this."
        if headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
            return 415, "A decision is a form."
        return None

    def _knows_token(self, path: str) -> bool:
        start = path[1 : len(self.token) + 1].encode()
        whole = path[len(self.token) + 1 : len(self.token) + 2] in ("", "/")
        return hmac.compare_digest(start, self.token.encode()) and whole


def _once_each(pairs: list[tuple[bytes, bytes]]) -> dict[str, str] | None:
    """Headers by name; None where one that counts here is there twice."""
    found: dict[str, str] = {}
    for key, value in pairs:
        name = key.decode("latin-1").lower()
        if name in found and name in ("host", "origin", "hx-request", "content-type"):
            return None
        found[name] = value.decode("latin-1")
    return found


def _completed(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """With all that a response does not say of itself."""
    said = {name.lower() for name, _ in headers}
    ours = ((name.encode(), value.encode()) for name, value in HEADERS.items())
    return [*headers, *(pair for pair in ours if pair[0] not in said)]


async def _body(receive: Receive) -> bytes | None:
    """All of it; None where it is too large."""
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b""
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > LARGEST:
            return None
        if not message.get("more_body"):
            return b"".join(parts)


async def _refuse(send: Send, status: int, reason: str) -> None:
    data = f"{reason}\n".encode()
    told = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(data))]
    headers = _completed([*told, (b"connection", b"close")])
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data})
