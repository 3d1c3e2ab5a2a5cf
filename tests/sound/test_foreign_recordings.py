"""Recordings that libsndfile cannot read, and recordings elsewhere."""

from __future__ import annotations

import functools
import http.server
import io
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
import soundfile

from spklink.database.conversations import read_conversations
from spklink.sound.audio import Survey, channel_blocks, channels_of, probe
from spklink.sound.listening import hear
from spklink.sound.places import Remote, fetch_all, located, refusal
from spklink.sound.waveform import Waveform
from spklink.tables import sha256

av = pytest.importorskip("av")
RATE = 8000
KINDS = {  # ending → (coder, container, rate, channels)
    ".m4a": ("aac", "ipod", 16000, 2),
    ".mp4": ("aac", "mp4", 16000, 2),
    ".webm": ("libopus", "webm", 48000, 2),
    ".wma": ("wmav2", "asf", 16000, 2),
    ".amr": ("libopencore_amrnb", "amr", 8000, 1),
    ".3gp": ("libopencore_amrnb", "3gp", 8000, 1),
    ".aac": ("aac", "adts", 16000, 2),
}

RATES = {"libopencore_amrnb": 12200, "wmav2": 32000}  # of bits, that coders ask for


def tones(seconds: float, rate: int, channels: int) -> np.ndarray:
    """A tone a channel, each louder and softer in its own time."""
    t = np.arange(round(seconds * rate)) / rate
    wave = [np.sin(2 * np.pi * (300 + 150 * k) * t) * (0.3 + 0.2 * np.sin(2 * np.pi * (k + 1) * t))
            for k in range(channels)]  # fmt: skip
    return np.array(wave, np.float32)


def coded(path: Path, seconds: float = 3.0) -> Path:
    coder, container, rate, channels = KINDS[path.suffix]
    layout = "stereo" if channels == 2 else "mono"
    with av.open(str(path), "w", format=container) as file:
        stream = file.add_stream(coder, rate=rate, layout=layout)
        if coder in RATES:
            stream.bit_rate = RATES[coder]
        sound = tones(seconds, rate, channels)
        size = stream.codec_context.frame_size or 1024
        wanted = stream.codec_context.format or "fltp"
        fifo = av.AudioResampler(format=wanted, layout=layout, rate=rate)
        for at in range(0, sound.shape[1], size):
            frame = av.AudioFrame.from_ndarray(
                np.ascontiguousarray(sound[:, at : at + size]), format="fltp", layout=layout
            )
            frame.rate, frame.pts = rate, at
            for part in fifo.resample(frame):
                file.mux(stream.encode(part))
        file.mux(stream.encode(None))
    return path


@pytest.mark.parametrize("ending", KINDS)
def test_what_only_ffmpeg_reads(ending, tmp_path):
    path, channels = coded(tmp_path / f"call{ending}"), KINDS[ending][3]
    survey = Survey(channels)
    heard = np.concatenate(list(channel_blocks((path,), channels, RATE, 1.0, survey)))
    assert [p for p in survey.problems() if p.fatal or p.kind == "truncated"] == []
    assert channels_of(path) == channels
    assert 2.0 < probe((path,), channels).seconds <= 3.2 or ending in (".aac", ".amr")
    assert abs(len(heard) / RATE - 3.0) < 0.15
    wanted = tones(3.0, RATE, channels)
    for k in range(channels):  # the tone of each channel is on that channel
        spectrum = np.abs(np.fft.rfft(heard[:, k]))
        assert abs(np.argmax(spectrum) * RATE / len(heard) - (300 + 150 * k)) < 5
        assert abs(heard[:, k].std() / wanted[k].std() - 1.0) < 0.2


@pytest.mark.parametrize("seconds", [0.1, 0.7, 10.0])
def test_blocks_do_not_matter(seconds, tmp_path):
    path = coded(tmp_path / "call.m4a")
    whole = np.concatenate(list(channel_blocks((path,), 2, RATE, 2.0)))
    assert np.array_equal(whole, np.concatenate(list(channel_blocks((path,), 2, RATE, seconds))))


def why(path: Path) -> str:
    [problem] = probe((path,), 2).problems
    return f"{problem.kind}: {problem.text}"


def test_odd_files_are_named(tmp_path, write):
    data = coded(tmp_path / "call.m4a").read_bytes()
    assert "damaged, or cut off" in why(write("cut.m4a", data[:400]))
    locked = data.replace(b"mp4a", b"enca").replace(b"udta", b"sinf")
    assert "encrypted (DRM)" in why(write("song.m4p", locked + b"sinf"))
    assert "no sound in it" in why(silent_film(tmp_path / "film.mp4"))
    head = b"NIST_1A\n   1024\nsample_coding -s26 pcm,embedded-shorten-v2.00\nend_head\n"
    assert "compressed with shorten; unpack it: sph2pipe" in why(write("x.sph", head.ljust(2048)))
    assert "mono: one channel where two" in why(coded(tmp_path / "one.amr"))


def silent_film(path: Path) -> Path:
    with av.open(str(path), "w") as file:
        stream = file.add_stream("mpeg4", rate=5)
        stream.width = stream.height = 16
        file.mux(stream.encode(av.VideoFrame(16, 16, "yuv420p")))
        file.mux(stream.encode(None))
    return path


def test_the_extra_is_named(tmp_path, monkeypatch):
    path = coded(tmp_path / "call.webm")
    monkeypatch.setitem(sys.modules, "av", None)
    monkeypatch.delitem(sys.modules, "spklink.sound.av_sound", raising=False)
    assert why(path) == 'unreadable: Matroska (webm, mka) needs PyAV: pip install "spklink[av]"'


# --- elsewhere ------------------------------------------------------------------------------------


def wav() -> bytes:
    file = io.BytesIO()
    soundfile.write(file, tones(2.0, RATE, 2).T, RATE, format="WAV")
    return file.getvalue()


@pytest.fixture
def served(tmp_path):
    """A folder behind http://127.0.0.1."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words):
            pass

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))
    )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_http(served, tmp_path):
    folder, address = served
    (folder / "1.wav").write_bytes(wav())
    place = located(tmp_path, f"{address}/1.wav?token=x")
    first = place.fetched(tmp_path / "cache")
    assert first.read_bytes() == wav()
    assert first.suffix == ".wav"
    assert place.fetched(tmp_path / "cache") == first
    (folder / "1.wav").write_bytes(wav()[:-8])
    again = place.fetched(tmp_path / "cache")
    assert again.read_bytes() == wav()[:-8]
    assert refusal(located(tmp_path, f"{address}/gone.wav")) == "no such file"


def test_memory_and_archives(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    fsspec.filesystem("memory").pipe("/calls/1.wav", wav())
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("calls/1.wav", wav())
    for name in ("memory://calls/1.wav", "zip://calls/1.wav::a.zip"):
        assert located(tmp_path, name).fetched(tmp_path / "cache").read_bytes() == wav()
    assert refusal(located(tmp_path, "zip://calls/2.wav::a.zip")) == "no such file"
    assert refusal(located(tmp_path, "zip://calls/2.wav::b.zip")) == "no such file"


def test_a_locked_archive_is_named(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("1.wav", wav())
    data = bytearray(path.read_bytes())
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + at] |= 1  # the bit that says so
    path.write_bytes(data)
    [(_, said)] = fetch_all([(located(tmp_path, "zip://1.wav::a.zip"),)], tmp_path / "cache", None)
    assert said == "encrypted in its archive; unpack the archive with its password"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("file:///etc/passwd", "file:// is not fetched"),
        ("local://x.wav", "local:// is not fetched"),
        ("zip://1.wav::file:///a.zip", "file:// is not fetched"),
        ("reference://x.wav", "reference:// is not fetched"),
    ],
)
def test_nothing_else_is_fetched(name, said, tmp_path):
    assert refusal(located(tmp_path, name)).startswith(said)


def test_the_extras_for_elsewhere_are_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    assert refusal(located(tmp_path, "s3://b/1.wav")) == (
        's3:// needs s3fs: pip install "spklink[remote]"'
    )
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    assert "need fsspec: pip install" in refusal(located(tmp_path, "http://x/1.wav"))


def test_paths_stay_paths(tmp_path):
    for name in ("calls/1.wav", "C:/calls/1.wav", "a:b.wav", "/calls/1.wav"):
        assert isinstance(located(tmp_path, name), Path)
    assert isinstance(located(tmp_path, "S3://bucket/1.wav"), Remote)


def test_calls_from_elsewhere_are_heard(calls, tmp_path, served):
    """The same sound, and the same hashes, as beside the table; one that is gone is named."""
    folder, address = served
    (folder / "0.wav").write_bytes((calls / "0.wav").read_bytes())
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(calls / "1.wav", "x/1.wav")
    names = [f"{address}/0.wav", "zip://x/1.wav::a.zip", f"{address}/gone.wav"]
    rows = [f"c{k},{name},a{k};b" for k, name in enumerate(names)]
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["conversation,audio,participants", *rows, ""]))
    read = read_conversations(table)
    sound = hear(read, Waveform(), tmp_path / "cache" / "f", min_speech=0.5, skip_bad=True)
    hashes = [one.sha256[0] for one in sound.heard[:2]]
    assert hashes == [sha256(calls / f"{k}.wav") for k in (0, 1)]
    assert sound.marks[4:] == ["bad audio", "bad audio"]
    assert sound.heard[2].fatal(0) == "unreadable: no such file"
