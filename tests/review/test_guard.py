"""Who is not let in, and what is not taken: nothing of it is written."""

from __future__ import annotations

import json
import secrets
import socket
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

import pytest

from reviewed import ask, decide, own_headers, served, write_results
from spklink.decisions.log import Decisions

UP = ["..", "../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "....//x"]
ODD = [
    *UP,
    "/etc/passwd",
    "-1",
    "1e3",
    "0x1",
    "١",
    "6",
    "999999999",
    "9" * 40,
    "",
    " ",
    "\x00",
    "a;b",
]


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    return write_results(tmp_path_factory.mktemp("guarded"))


@pytest.fixture(scope="module")
def address(out):
    with served(out) as server:
        yield server.address


@pytest.fixture
def unwritten(out):
    """Nothing is in the log before, and nothing after."""
    log = Decisions.open(out / "review.sqlite")
    before = log.all()
    files = sorted(path.name for path in out.iterdir())
    yield
    assert log.all() == before
    assert sorted(path.name for path in out.iterdir()) == files
    log.close()


def test_our_own_page_is_let_in(address):
    answer = ask(address)
    assert answer.status == 200
    assert "What to listen to next" in answer.text
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for name in ("x-content-type-options", "x-frame-options", "referrer-policy"):
        assert name in answer.headers
    assert answer.headers["cache-control"] == "no-store"
    assert "server" not in answer.headers
    for name in ("127.0.0.1", "localhost"):
        port = urlsplit(address).port
        assert ask(address, headers={"Host": f"{name}:{port}"}).status == 200
    assert ask(address, headers={"Host": "localhost:9999"}).status == 200  # through a tunnel


def paths(token: str) -> list[str]:
    wrong = secrets.token_urlsafe(24)
    found = [
        "/",
        f"/{wrong}/",
        f"/{token[:-1]}/",
        f"/{token}x/",
        f"/{token.swapcase()}/",
        f"/x/{token}/",
    ]
    return [
        *found,
        f"//{token}/",
        f"/%20{token}/",
        "/c/0",
        "/static/page.css",
        f"/{token[:-1]}%00/",
    ]


def test_nobody_without_the_token(address, unwritten):
    token = urlsplit(address).path.strip("/")
    for path in paths(token):
        for rest in ("", "c/0", "outline/0", "sound/0/all.wav", "static/page.css"):
            answer = ask(address, rest, base=path)
            assert answer.status == 403, path
            assert token not in answer.text
            assert "c0" not in answer.text


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "127.0.0.1.evil.example", "evil.example:80", "127.0.0.1@evil.example"),
        *("", "[::1]", "127.0.0.1:80:80", "0.0.0.0", "2130706433", "127.1", "localhost."),
        *("LOCALHOST.evil", "127.0.0.1:", "127.0.0.1:x", "localhost:80@evil.example"),
    ],
)
def test_no_other_name_for_this_machine(address, unwritten, host):
    """A name that somebody points at this machine (DNS rebinding) knows even the token here."""
    assert ask(address, headers={"Host": host}).status in (400, 421)
    headers = own_headers(address) | {"Host": host, "Origin": f"http://{host}"}
    assert decide(address, 0, headers).status in (400, 421)


def test_two_hosts_are_none(address, unwritten):
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as line:
        hosts = f"Host: {parts.netloc}\r\nHost: evil.example\r\n"
        line.sendall(f"GET {parts.path} HTTP/1.1\r\n{hosts}\r\n".encode())
        assert line.recv(100).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    "other",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://{}"},
        {"Origin": "http://{}.evil.example"},
        {"Origin": None},
        {"HX-Request": None},
        {"HX-Request": "false"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Content-Type": "text/plain"},
        {"Content-Type": "multipart/form-data; boundary=x"},
        {"Content-Type": None},
    ],
    ids=str,
)
def test_no_decision_from_another_page(address, unwritten, other):
    headers = own_headers(address)
    for name, value in other.items():
        if value is None:
            del headers[name]
        else:
            headers[name] = value.format(urlsplit(address).netloc)
    assert decide(address, 0, headers).status in (403, 415)


def test_no_sound_for_another_page(address):
    foreign = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert ask(address, "sound/0/all.wav", foreign).status == 403
    by_hand = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert ask(address, headers=by_hand).status == 200  # the link in a terminal of a browser


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "JUNK"])
def test_no_other_method(address, unwritten, method):
    assert ask(address, "c/0", own_headers(address), method=method).status in (400, 405)


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_no_way_out_of_the_table(address, unwritten, odd):
    word = odd if odd in UP[2:4] else quote(odd)
    for path in (
        *(f"c/{word}", f"outline/{word}", f"sound/{word}/all.wav", f"sound/0/{word}.wav"),
        *(f"static/{word}", f"static/..%2f{word}", f"{word}/c/0"),
    ):
        answer = ask(address, path)
        assert answer.status in (403, 404, 405), (path, answer.status)
        assert b"root:" not in answer.body
    for name in ("q", "start", "version", "m"):
        asked = urlencode({name: odd})
        for where in ("find", "queue", "news"):
            answer = ask(address, f"{where}?{asked}")
            assert answer.status in (200, 204, 404), (where, name, answer.status)
            assert b"root:" not in answer.body
    assert (
        ask(address, f"c/{word}/decide", own_headers(address), method="POST", body=b"").status
        != 200
    )


def test_no_file_beside_the_static_ones(address):
    for name in ("../server.py", "LICENSES", "../templates/page.html", "page.css/..", "."):
        assert ask(address, f"static/{quote(name, safe='')}").status == 404


@pytest.mark.parametrize(
    "fields",
    [
        {"seats": ""},
        {"seats": "0"},
        {"seats": "0 1 0"},
        {"seats": "0 0"},
        {"seats": "0 2"},
        {"seats": "0 -1"},
        {"seats": "- -"},
        {"seats": "ann bo"},
        {"seats": "0  1"},
        {"seats": "0\n1"},
        {"seats": "'; drop table decisions; --"},
        {"verdict": "undo"},
        {"verdict": "given"},
        {"verdict": ""},
        {"verdict": "resolve"},
        {"request": ""},
        {"request": "../../x"},
        {"request": "a" * 31},
        {"request": "g" * 32},
    ],
    ids=str,
)
def test_no_decision_that_makes_no_sense(address, unwritten, fields):
    answer = decide(address, 0, **fields)
    assert answer.status in (400, 404, 409)
    assert answer.headers["content-type"].startswith("text/plain")


def test_no_decision_about_an_unknown_conversation(address, unwritten):
    for m in (6, 7, 10**6, 10**12):
        assert decide(address, m).status == 404


def test_no_undo_of_what_is_not_there(address, unwritten):
    for number in ("", "0", "1", "-1", "x", "99999999999"):
        body = urlencode({"number": number, "request": secrets.token_hex(16)}).encode()
        answer = ask(address, "c/0/undo", own_headers(address), method="POST", body=body)
        assert answer.status in (404, 409)


@pytest.mark.parametrize("kind", ["zeros", "random", "fields", "twice", "percent", "json"])
def test_a_megabyte_of_junk(address, unwritten, kind):
    made = {
        "zeros": bytes(1 << 20),
        "random": secrets.token_bytes(1 << 20),
        "fields": b"&".join(b"seats=0+1" for _ in range(100_000)),
        "twice": b"seats=0+1&seats=1+0&verdict=heard&request=" + secrets.token_hex(16).encode(),
        "percent": b"%" * 60_000,
        "json": json.dumps({"seats": ["ann", "bo"]}).encode(),
    }[kind]
    answer = ask(address, "c/0/decide", own_headers(address), method="POST", body=made)
    assert answer.status == (413 if len(made) > 1 << 18 else 400)
    assert ask(address).status == 200


def test_a_body_that_lies_about_its_length(address, unwritten):
    parts = urlsplit(address)
    head = "".join(f"{k}: {v}\r\n" for k, v in own_headers(address).items())
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as line:
        start = f"POST {parts.path}c/0/decide HTTP/1.1\r\nHost: {parts.netloc}\r\n{head}"
        line.sendall(f"{start}Transfer-Encoding: chunked\r\n\r\n".encode())
        chunk = b"10000\r\n" + bytes(0x10000) + b"\r\n"
        answer = b""
        try:
            for _ in range(16):
                line.sendall(chunk)
            answer = line.recv(100)
        except OSError:
            pass  # the door was shut in the middle
        assert not answer or answer.startswith(b"HTTP/1.1 413")
    assert ask(address).status == 200


def test_headers_of_a_megabyte(address, unwritten):
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as line:
        try:
            line.sendall(f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nX: ".encode())
            line.sendall(b"x" * (1 << 20))
            answer = line.recv(100)
        except OSError:
            answer = b""
        assert not answer or answer.startswith(b"HTTP/1.1 4")
    assert ask(address).status == 200


def test_ranges_that_make_no_sense(address):
    size = int(ask(address, "sound/0/all.wav").headers["content-length"])
    for text, status in (
        ("bytes=0-0", 206),
        (f"bytes={size - 1}-", 206),
        ("bytes=-10", 206),
        (f"bytes={size}-", 416),
        ("bytes=9-3", 416),
        ("bytes=-0", 416),
        ("bytes=0-9,20-29", 200),
        ("bytes=-", 200),
        ("lines=0-9", 200),
        ("bytes=" + "9" * 40 + "-", 200),
        ("bytes=a-b", 200),
    ):
        answer = ask(address, "sound/0/all.wav", {"Range": text})
        assert answer.status == status, text
        if status == 206:
            first, last, of = (
                answer.headers["content-range"].removeprefix("bytes ").replace("/", "-").split("-")
            )
            assert int(of) == size
            assert len(answer.body) == int(last) - int(first) + 1
