"""What the page asks for, and what it gets: pages and parts of pages, sound, decisions.

A conversation is addressed by its number in the table. A decision names people by their place in
the list of the conversation ("0 1", `*` for someone else, `-` where nothing is said), so that
nothing which a request says reaches the log but what is in the table.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote

from starlette.applications import Starlette
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from spklink.errors import SpklinkError
from spklink.review.desk import Desk
from spklink.review.pages import Pages
from spklink.review.recordings import Recordings

STATIC = Path(__file__).parent / "static"
TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
LONGEST_NAME, LONGEST_WHY = 100, 1000  # letters
REQUEST = re.compile(r"[0-9a-f]{32}")
RANGE = re.compile(r"bytes=(\d{0,15})-(\d{0,15})")
VERDICTS = ("heard", "unsure", "resolve")
WHO = "reviewer"  # the cookie
Asked = Callable[[Request], Awaitable[Response]]


class _RefusedError(Exception):
    """A request that makes no sense: status, reason, and what headers say of it."""

    def __init__(self, status: int, reason: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.headers = status, reason, headers or {}


class Review:
    """The routes, and what they share."""

    def __init__(
        self, desk: Desk, recordings: Recordings, token: str, *, blind: bool, reviewer: str
    ) -> None:
        self.desk, self.recordings, self.token = desk, recordings, token
        self.reviewer = reviewer
        self.pages = Pages(desk, recordings, f"/{token}", blind=blind)

    def app(self) -> Starlette:
        def get(path: str, answer: Asked) -> Route:
            return Route(path, _guarded(answer), methods=["GET"])

        def post(path: str, answer: Asked) -> Route:
            return Route(path, _guarded(answer), methods=["POST"])

        app = Starlette(
            routes=[
                get("/", self.first),
                get("/c/{m}", self.conversation),
                get("/queue", self.queue),
                get("/news", self.news),
                get("/find", self.find),
                get("/outline/{m}", self.outline),
                get("/sound/{m}/{tracks}.wav", self.sound),
                get("/static/{name}", self.static),
                post("/c/{m}/decide", self.decide),
                post("/c/{m}/undo", self.undo),
                post("/reviewer", self.rename),
            ]
        )
        app.router.redirect_slashes = False
        return app

    # --- pages ------------------------------------------------------------------------------------

    async def first(self, request: Request) -> Response:
        """The page, at what should be listened to next."""
        return await self._page(request, None)

    async def conversation(self, request: Request) -> Response:
        """The page at one conversation, or that part of it."""
        m = self._m(request)
        if request.headers.get("hx-request") != "true":
            return await self._page(request, m)
        await run_in_threadpool(self.desk.refresh)
        answer = _html(await run_in_threadpool(self.pages.conversation, m, *self._as(request)))
        answer.headers["hx-push-url"] = f"/{self.token}/c/{m}"
        return answer

    async def _page(self, request: Request, m: int | None) -> Response:
        nonce = secrets.token_urlsafe(16)
        await run_in_threadpool(self.desk.refresh)
        text = await run_in_threadpool(self.pages.whole, m, *self._as(request), nonce)
        return _html(text, policy(nonce))

    async def queue(self, request: Request) -> Response:
        start = _number(request.query_params.get("start", "0"))
        return _html(await run_in_threadpool(self.pages.queue, start))

    async def news(self, request: Request) -> Response:
        """What others decided since; nothing where nothing changed."""
        await run_in_threadpool(self.desk.refresh)
        if request.query_params.get("version") == self.pages.state():
            return Response(status_code=204)
        since = _number(request.query_params.get("version", "0"))
        here = request.query_params.get("m", "")
        m = _number(here) if here else None
        if m is not None and m >= len(self.desk.table):
            raise _RefusedError(404, "No such conversation.")
        return _html(await run_in_threadpool(self.pages.news, since, m))

    async def find(self, request: Request) -> Response:
        words = request.query_params.get("q", "")[:LONGEST_NAME]
        return _html(await run_in_threadpool(self.pages.found, words))

    # --- sound ------------------------------------------------------------------------------------

    async def outline(self, request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self.recordings.drawing, self._m(request)))

    async def sound(self, request: Request) -> Response:
        """Some tracks of a recording as a WAV file, or the range of it that is asked for."""
        m = self._m(request)
        heard = self._tracks(m, request.path_params["tracks"])
        try:
            wav = await run_in_threadpool(self.recordings.playable, m)
        except SpklinkError as error:
            raise _RefusedError(404, str(error)) from None
        first, after, part = _range(request.headers.get("range", ""), wav.size)
        headers = {"accept-ranges": "bytes", "content-length": str(after - first)}
        if part:
            headers["content-range"] = f"bytes {first}-{after - 1}/{wav.size}"
        return StreamingResponse(
            iterate_in_threadpool(wav.bytes_from(first, after, heard)),
            status_code=206 if part else 200,
            media_type="audio/wav",
            headers=headers,
        )

    async def static(self, request: Request) -> Response:
        found = {path.name: path for path in STATIC.iterdir() if path.suffix in TYPES}
        path = found.get(request.path_params["name"])
        if path is None:
            raise _RefusedError(404, "No such file.")
        kept = {"cache-control": "private, max-age=86400"}
        return FileResponse(path, media_type=TYPES[path.suffix], headers=kept)

    # --- decisions --------------------------------------------------------------------------------

    async def decide(self, request: Request) -> Response:
        m, form = self._m(request), await _form(request)
        verdict = form.get("verdict", "heard")
        if verdict not in VERDICTS:
            raise _RefusedError(400, "No such verdict.")
        seats = self._seats(m, form.get("seats", ""), verdict)
        asked = self._request(form)
        reviewer, blind = self._as(request)
        change = await run_in_threadpool(
            lambda: self.desk.decide(
                m,
                seats,
                reviewer=reviewer,
                request=asked,
                verdict=verdict,
                why=form.get("why", "")[:LONGEST_WHY],
                shown=self.pages.shown(asked),
            )
        )
        return _html(await run_in_threadpool(self.pages.changed, m, reviewer, blind, change))

    async def undo(self, request: Request) -> Response:
        m, form = self._m(request), await _form(request)
        asked, (reviewer, blind) = self._request(form), self._as(request)
        number = _number(form.get("number", ""))
        await run_in_threadpool(self.desk.refresh)
        entry = self.desk.verdicts.find(number)
        if entry is not None and entry.conversation != self.desk.table.ids[m]:
            raise _RefusedError(400, "That entry is about another conversation.")
        change = await run_in_threadpool(
            lambda: self.desk.undo(reviewer=reviewer, request=asked, number=number)
        )
        return _html(await run_in_threadpool(self.pages.changed, m, reviewer, blind, change))

    async def rename(self, request: Request) -> Response:
        """Another person sits down at this browser."""
        name = " ".join((await _form(request)).get("name", "").split())[:LONGEST_NAME]
        if not name:
            raise _RefusedError(400, "A reviewer needs a name.")
        answer = Response(status_code=204, headers={"hx-refresh": "true"})
        answer.set_cookie(
            WHO, quote(name, safe=""), path=f"/{self.token}/", httponly=True, samesite="strict"
        )
        return answer

    # --- what a request says ----------------------------------------------------------------------

    def _as(self, request: Request) -> tuple[str, bool]:
        """Who is asking, and whether what the system thinks is hidden from them."""
        name = unquote(request.cookies.get(WHO, ""))[:LONGEST_NAME].strip()
        return name or self.reviewer, self.pages.blind

    def _m(self, request: Request) -> int:
        m = _number(request.path_params["m"])
        if m >= len(self.desk.table):
            raise _RefusedError(404, "No such conversation.")
        return m

    def _tracks(self, m: int, text: str) -> list[int]:
        """Tracks as the address names them: 1-2, or all."""
        count = int(self.desk.table.sides.counts[m])
        if text == "all":
            return list(range(count))
        found = [_number(part) - 1 for part in text.split("-")]
        if len(set(found)) != len(found) or not all(0 <= track < count for track in found):
            raise _RefusedError(404, "No such track.")
        return sorted(found)

    def _seats(self, m: int, text: str, verdict: str) -> tuple[str | None, ...]:
        names, count = self.desk.table.names(m), int(self.desk.table.sides.counts[m])
        if verdict == "unsure":
            return (None,) * count
        parts = text.split(" ")
        if len(parts) != count:
            raise _RefusedError(400, f"{count} tracks need {count} answers.")
        seats = tuple(_seat(part, names) for part in parts)
        if all(seat is None for seat in seats):
            raise _RefusedError(400, "Nothing is said of any track.")
        people = [seat for seat in seats if seat not in (None, "*")]
        if len(set(people)) != len(people) and not self.desk.table.split:
            raise _RefusedError(400, "The same person on two tracks.")
        return seats

    def _request(self, form: dict[str, str]) -> str:
        asked = form.get("request", "")
        if not REQUEST.fullmatch(asked):
            raise _RefusedError(400, "No such request.")
        return asked


def policy(nonce: str) -> str:
    """What a browser may do with the page: our own files; the nonce is for the style that the
    waveform brings along."""
    return (
        "default-src 'none'; script-src 'self'; connect-src 'self'; media-src 'self'; "
        f"img-src data:; style-src 'self' 'nonce-{nonce}'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )


def _html(text: str, allowed: str = "") -> Response:
    headers = {"content-security-policy": allowed} if allowed else {}
    return Response(text, media_type="text/html; charset=utf-8", headers=headers)


def _guarded(answer: Asked) -> Asked:
    """What goes wrong in words; to a page that asked for a part, as a part."""

    async def answered(request: Request) -> Response:
        headers: dict[str, str] = {}
        try:
            return await answer(request)
        except _RefusedError as error:
            status, reason, headers = error.status, error.reason, error.headers
        except SpklinkError as error:
            status, reason = 409, str(error)
        except OSError as error:
            status, reason = 503, error.strerror or "The disk does not answer."
        return Response(f"{reason}\n", status, headers, media_type="text/plain; charset=utf-8")

    return answered


def _number(text: str) -> int:
    """A number as an address has it."""
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise _RefusedError(404, "No such number.")
    return int(text)


def _seat(text: str, names: tuple[str, ...]) -> str | None:
    if text in ("*", "-"):
        return "*" if text == "*" else None
    place = _number(text)
    if place >= len(names):
        raise _RefusedError(400, "Nobody at that place of the list.")
    return names[place]


def _range(text: str, size: int) -> tuple[int, int, bool]:
    """First byte, the one after the last, and whether that was asked for."""
    found = RANGE.fullmatch(text.strip())
    if found is None or found[1] == found[2] == "":
        return 0, size, False
    if found[1] == "":  # the last so many
        first, after = max(0, size - int(found[2])), size
    else:
        first, after = int(found[1]), min(size, int(found[2]) + 1 if found[2] else size)
    if first >= size or first >= after:
        raise _RefusedError(416, f"There are {size} bytes.", {"content-range": f"bytes */{size}"})
    return first, after, True


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form, each once."""
    try:
        text = (await request.body()).decode("ascii")
        found = parse_qs(text, keep_blank_values=True, max_num_fields=50, errors="strict")
    except ValueError:
        raise _RefusedError(400, "Not a form.") from None
    if any(len(values) > 1 for values in found.values()):
        raise _RefusedError(400, "A field was sent twice.")
    return {name: values[0] for name, values in found.items()}
