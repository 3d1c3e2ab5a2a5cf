"""`spklink review` as a command: its address, its errors, its end."""

from __future__ import annotations

import secrets
import signal
import socket
import subprocess
import sys
from urllib.parse import urlencode

import pytest

from reviewed import ask, decide, own_headers, served, write_results
from spklink.decisions.log import Decisions


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return write_results(tmp_path_factory.mktemp("served"))


def test_it_prints_one_address_and_serves_until_interrupted(out):
    words = [sys.executable, "-m", "spklink", "review", str(out)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    address = line.removeprefix("review: ").strip()
    assert address.startswith("http://127.0.0.1:")
    assert ask(address).status == 200
    process.send_signal(signal.SIGINT)
    rest, said = process.communicate(timeout=20)
    assert process.returncode in (0, 130)
    assert "http://" not in rest
    assert "Traceback" not in said


def test_a_port_that_is_taken(run, out):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        code, _, err = run("review", out, "--port", port)
    assert code == 2
    assert (
        err == f"spklink: --port {port}: something else listens there; give another one, or none\n"
    )


def test_a_port_that_there_is_not(run, out):
    code, _, err = run("review", out, "--port", 70_000)
    assert code == 2
    assert "--port 70000" in err


def test_no_results_no_page(run, tmp_path):
    code, _, err = run("review", tmp_path)
    assert code == 2
    assert "no finished results here" in err


def test_it_listens_on_this_machine_alone(out):
    with served(out) as server:
        port = int(server.address.split(":")[2].split("/")[0])
        with socket.socket() as other:
            other.settimeout(2)
            assert other.connect_ex(("127.0.0.2", port)) != 0


def test_every_start_has_a_token_of_its_own(out):
    with served(out) as one, served(out) as two:
        tokens = {server.address.split("/")[3] for server in (one, two)}
        assert len(tokens) == 2
        assert all(len(token) >= 32 for token in tokens)


def test_two_servers_of_one_folder_see_each_other(tmp_path):
    out = write_results(tmp_path)
    with served(out, reviewer="anna") as one, served(out, reviewer="bert") as two:
        assert decide(one.address, 3, seats="0 1").status == 200
        assert "anna" in ask(two.address, "c/3").text
        answer = decide(two.address, 3, seats="1 0")
        assert "Two reviewers heard different things" in answer.text
        assert "Two reviewers heard different things" in ask(one.address, "c/3").text


def test_the_same_request_twice_is_stored_once(tmp_path):
    out = write_results(tmp_path)
    with served(out) as server:
        first = decide(server.address, 3, request="ab" * 16)
        again = decide(server.address, 3, request="ab" * 16)
        assert first.status == again.status == 200
    log = Decisions.open(out / "review.sqlite")
    assert len(log.all()) == 1
    log.close()


def test_an_undo_through_another_conversation_is_not_stored(tmp_path):
    out = write_results(tmp_path)
    with served(out) as server:
        assert decide(server.address, 3).status == 200
        for m, status in ((2, 400), (3, 200)):
            form = {"number": "1", "request": secrets.token_hex(16)}
            headers, body = own_headers(server.address), urlencode(form).encode()
            answer = ask(server.address, f"c/{m}/undo", headers, method="POST", body=body)
            assert answer.status == status
            log = Decisions.open(out / "review.sqlite")
            assert len(log.all()) == (1 if status == 400 else 2)
            log.close()


def test_a_recording_that_is_gone_is_no_error(tmp_path):
    out = write_results(tmp_path)
    (tmp_path / "0.wav").unlink()
    (tmp_path / "1.wav").write_bytes(b"RIFF")
    with served(out) as server:
        for m in (0, 1):
            assert ask(server.address, f"c/{m}").status == 200
            assert "problem" in ask(server.address, f"outline/{m}").text
            assert ask(server.address, f"sound/{m}/all.wav").status == 404
            assert str(tmp_path) not in ask(server.address, f"c/{m}").text
