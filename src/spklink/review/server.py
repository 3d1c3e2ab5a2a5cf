"""`spklink review`: one address on this machine, served until it is interrupted."""

from __future__ import annotations

import contextlib
import errno
import secrets
import socket
from pathlib import Path
from typing import Any

from spklink.errors import SpklinkError
from spklink.review.desk import Desk
from spklink.review.guard import App, Guard
from spklink.review.recordings import Recordings
from spklink.review.routes import Review
from spklink.review_options import FEWEST
from spklink.runs.folder import read_run
from spklink.runs.stages import Stages

ADDRESS = "127.0.0.1"
CACHE = "cache/outlines"
PATIENCE = 1  # seconds for answers under way when it is interrupted: sound may be playing


class Server:
    """A page that can be opened at its address as long as it is served."""

    def __init__(self, app: App, token: str, listening: socket.socket) -> None:
        import uvicorn

        self.address = f"http://{ADDRESS}:{listening.getsockname()[1]}/{token}/"
        self._listening = listening
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_level="error",
                access_log=False,
                server_header=False,
                lifespan="off",
                ws="none",
                timeout_graceful_shutdown=PATIENCE,
            )
        )

    def run(self) -> None:
        """Serve until interrupted, or stopped from another thread."""
        with contextlib.closing(self._listening):
            self._server.run(sockets=[self._listening])

    def stop(self) -> None:
        self._server.should_exit = True


def make_server(
    out: Path,
    *,
    port: int = 0,
    blind: bool = False,
    reviewer: str = "",
    order: str = FEWEST,
    workers: int | None = None,
    stages: Stages | None = None,
) -> Server:
    """Take a port, then open the results."""
    listening = _listen(port)
    try:
        desk = Desk.open(out, order=order, workers=workers, stages=stages)
        token = secrets.token_urlsafe(24)
        app = make_app(desk, recordings_of(out, desk), token, blind=blind, reviewer=reviewer)
        return Server(app, token, listening)
    except BaseException:
        listening.close()
        raise


def make_app(
    desk: Desk, recordings: Recordings, token: str, *, blind: bool = False, reviewer: str = ""
) -> App:
    """The page behind its door."""
    review = Review(desk, recordings, token, blind=blind, reviewer=reviewer or somebody())
    return Guard(review.app(), token)


def recordings_of(out: Path, desk: Desk) -> Recordings:
    """The recordings of a results folder, and the transcripts it was made with."""
    given: dict[str, Any] = read_run(out)["inputs"].get("turns", {})
    turns = out / given["file"] if given.get("file") else None
    return Recordings(desk.table, out / CACHE, turns)


def somebody() -> str:
    """Who is at the keyboard, as the system knows them."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "reviewer"


def _listen(port: int) -> socket.socket:
    """A socket on this machine alone; port 0 is any that is free."""
    if not 0 <= port < 1 << 16:
        raise SpklinkError(f"--port {port}: a number from 0 to {(1 << 16) - 1}")
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((ADDRESS, port))
        listening.listen(128)  # from here on it answers, if later
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise SpklinkError(
                f"--port {port}: something else listens there; give another one, or none"
            ) from None
        raise SpklinkError(f"--port {port}: {error.strerror}; give another one, or none") from None
    return listening
