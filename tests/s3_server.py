"""An S3 server of this machine, in a process of its own: moto's."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

START = "import sys; from moto.server import main; main(['-H', '127.0.0.1', '-p', sys.argv[1]])"


@contextmanager
def s3_server(log: Path) -> Iterator[tuple[dict[str, str], subprocess.Popen[bytes]]]:
    """What the environment must say for it, and its process."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    with log.open("wb") as said:
        server = subprocess.Popen(
            [sys.executable, "-c", START, str(port)], stdout=said, stderr=said
        )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(url, server, log)
            words = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "test")
            yield words | {"AWS_ENDPOINT_URL": url, "AWS_DEFAULT_REGION": "us-east-1"}, server
        finally:
            server.kill()
            server.wait()


def _wait(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    while True:
        assert server.poll() is None, log.read_text()
        try:
            with urlopen(f"{url}/moto-api/"):
                return
        except OSError:
            time.sleep(0.1)
