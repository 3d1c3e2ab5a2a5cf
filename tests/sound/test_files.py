"""Paths that are no recordings are told from such that are, without waiting or failing."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from spklink.sound import files
from spklink.sound.files import fingerprint, refusal, stamp


def test_what_can_be_read(write):
    path = write("a.wav", "x")
    assert refusal(path) == ""
    found = fingerprint(path)
    assert (len(found.sha256), found.why, found.stamp) == (64, "", stamp(path))


def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.wav")
    (tmp_path / "folder.wav").mkdir()
    (tmp_path / "round.wav").symlink_to(tmp_path / "round.wav")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s.wav"))
        said = {
            name: refusal(tmp_path / name)
            for name in ("pipe.wav", "folder.wav", "s.wav", "round.wav", "none.wav", "pipe.wav/a")
        }
    assert said.pop("round.wav").startswith("cannot be read (Too many levels")
    assert said == {
        "pipe.wav": "a pipe, not a file",
        "folder.wav": "a folder, not a file",
        "s.wav": "a socket, not a file",
        "none.wav": "no such file",
        "pipe.wav/a": "no such file",
    }
    assert refusal(Path("/dev/zero")) == "a device, not a file"
    assert fingerprint(tmp_path / "pipe.wav").sha256 == ""


@pytest.mark.parametrize("name", ["x" * 300, "y/" * 3000, "nul\0.wav", "half\udc80\0"])
def test_names_that_no_file_can_have(tmp_path, name):
    assert refusal(tmp_path / name).startswith("cannot be read (")
    assert fingerprint(tmp_path / name).stamp is None


def test_files_that_cannot_be_read(write, monkeypatch):
    broken = Path("/proc/self/mem")  # a file, but reading it from its start is an I/O error
    assert refusal(broken) == "cannot be read (Input/output error)"
    path = write("a.wav", "x")

    def refused(self, *_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refused)
    assert refusal(path) == "cannot be read (Permission denied)"
    monkeypatch.undo()

    def fails(_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(files, "sha256", fails)
    assert fingerprint(path).why == "cannot be read (Input/output error)"
