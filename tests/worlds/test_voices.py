from __future__ import annotations

import io
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import soundfile
from scipy.signal import freqz, welch

from spklink import SpklinkError, find_cliques, read_conversations, read_key
from spklink.worlds import voices
from spklink.worlds.voices import (
    RATE,
    Session,
    call,
    draw_session,
    make_voices,
    speak,
    write_database,
)


def seeded(seed):
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    folder = tmp_path_factory.mktemp("voices")
    write_database(folder, seed=3, seconds=(5.0, 6.0))
    return folder


@pytest.fixture(scope="module")
def calls():
    """Six calls of half a minute, between twelve voices."""
    cast = make_voices(12, seeded(1))
    return [call(cast[2 * k], cast[2 * k + 1], seeded(k)) for k in range(6)]


def loudness(samples, frame=200):
    """Decibels of every 25 ms."""
    whole = samples[: len(samples) // frame * frame].astype(float).reshape(-1, frame)
    return 10 * np.log10(np.mean(whole**2, axis=1) + 1e-12)


def pitches(samples, frame=400):
    """Hz of every 50 ms by autocorrelation, and how periodic it is; above 0.25 means voiced."""
    whole = samples[: len(samples) // frame * frame].astype(float).reshape(-1, frame)
    whole = whole[loudness(samples, frame) > loudness(samples, frame).max() - 20]
    whole = (whole - whole.mean(axis=1, keepdims=True)) * np.hanning(frame)
    # The root of the power spectrum: a strong formant is not taken for the pitch.
    likeness = np.fft.irfft(np.abs(np.fft.rfft(whole, 2 * frame)))[:, :frame]
    lags = np.arange(RATE // 400, RATE // 60)
    likeness = likeness[:, lags] / likeness[:, :1]
    best = likeness.max(axis=1)
    # The shortest lag that is nearly as good: a multiple of the period is as periodic.
    first = np.argmax(likeness > 0.9 * best[:, None], axis=1)
    climb = np.array([row[k : k + 8].argmax() for row, k in zip(likeness, first, strict=True)])
    return RATE / lags[first + climb], best


def spectrum(samples):
    """Long-term spectrum in the telephone band: decibels in 12 bands, without the level."""
    frequency, power = welch(samples.astype(float), RATE, nperseg=512)
    edges = np.geomspace(300, 3400, 13)
    bands = [power[(frequency >= a) & (frequency < b)].mean() for a, b in pairwise(edges)]
    decibels = 10 * np.log10(bands)
    return decibels - decibels.mean()


# --- a voice -------------------------------------------------------------------------------------


def test_a_voice_does_not_depend_on_how_many_there_are():
    few, many = make_voices(2, seeded(0)), make_voices(5, seeded(0))
    for one, other in zip(few, many, strict=False):
        assert one.pitch == other.pitch
        assert np.array_equal(one.accent, other.accent)
    assert len({voice.pitch for voice in many}) == 5


def test_the_same_seed_says_the_same():
    voice = make_voices(1, seeded(0))[0]
    said = speak(voice, Session(), 2.0, seeded(5))
    assert said.dtype == np.float32
    assert len(said) == 2 * RATE
    assert np.array_equal(said, speak(voice, Session(), 2.0, seeded(5)))
    assert not np.array_equal(said, speak(voice, Session(), 2.0, seeded(6)))


@pytest.mark.parametrize("which", range(6))
def test_pitch_is_the_voices_own(which):
    voice = make_voices(6, seeded(2))[which]
    found, periodic = pitches(speak(voice, Session(), 30.0, seeded(which)))
    semitones = 12 * np.log2(found[periodic > 0.25] / voice.pitch)
    assert abs(np.median(semitones)) < 1.2
    assert np.mean(np.abs(semitones) < 2.5 * voice.melody) > 0.85


def test_pitch_follows_the_session():
    voice = make_voices(1, seeded(2))[0]
    usual, _ = pitches(speak(voice, Session(), 12.0, seeded(0)))
    higher, _ = pitches(speak(voice, Session(pitch=1.2), 12.0, seeded(0)))
    assert np.median(higher) / np.median(usual) == pytest.approx(1.2, rel=0.04)


def test_babble_has_voiced_and_unvoiced_sounds_and_syllables():
    for which, voice in enumerate(make_voices(4, seeded(3))):
        said = speak(voice, Session(), 12.0, seeded(which))
        _, periodic = pitches(said)
        assert 0.6 < np.mean(periodic > 0.25) < 0.99
        assert np.mean(periodic < 0.15) > 0.01
        envelope = np.sqrt(np.mean(said.reshape(-1, 80) ** 2, axis=1))  # 100 a second
        rate, power = welch(envelope - envelope.mean(), 100, nperseg=256)
        syllables = (rate > 2) & (rate < 9)
        assert power[syllables].mean() > 5 * power[rate > 15].mean()


def test_formants_are_where_they_are_asked_for():
    for frequency, bandwidth in ((500.0, 60.0), (1500.0, 90.0), (2500.0, 140.0)):
        gain, b, c = voices._resonator(np.array([frequency]), bandwidth)[0]
        at, response = freqz([gain], [1.0, -b, -c], worN=4000, fs=RATE)
        size = np.abs(response)
        assert at[size.argmax()] == pytest.approx(frequency, abs=6)
        assert size[0] == pytest.approx(1.0)
        wide = at[size > size.max() / np.sqrt(2)]
        assert np.ptp(wide) == pytest.approx(bandwidth, rel=0.1)


def test_a_longer_tract_has_lower_formants():
    voice = make_voices(1, seeded(4))[0]
    centre = []
    for tract in (0.85, 1.0, 1.2):
        longer = replace(voice, tract=tract, hiss=1.0 / tract)  # the hiss stays where it is
        said = speak(longer, Session(), 10.0, seeded(0))
        frequency, power = welch(said, RATE, nperseg=512)
        centre.append((frequency * power).sum() / power.sum())
    assert centre[0] < centre[1] < centre[2]


def test_voices_differ_more_than_sessions():
    rng, spectra = seeded(6), np.empty((24, 2, 12))
    for voice, of_voice in zip(make_voices(24, seeded(5)), spectra, strict=True):
        for session, found in zip((draw_session(rng), draw_session(rng)), of_voice, strict=True):
            found[:] = spectrum(voices.send(speak(voice, session, 15.0, rng), session))
    within = spectra.var(axis=1, ddof=1).mean()
    between = spectra.mean(axis=1).var(axis=0, ddof=1).mean() - within / 2
    assert between > within


# --- a call --------------------------------------------------------------------------------------


def test_samples_are_mu_law_levels_that_a_file_keeps(calls):
    for samples in calls:
        assert samples.dtype == np.int16
        assert samples.shape == (30 * RATE, 2)
        file = io.BytesIO()
        soundfile.write(file, samples, RATE, subtype="ULAW", format="WAV")
        file.seek(0)
        assert np.array_equal(soundfile.read(file, dtype="int16")[0], samples)


def test_mu_law_is_the_nearest_level():
    table = voices._mu_law_table()
    every = np.arange(-32768, 32768, 7)
    file = io.BytesIO(bytes(range(256)))
    levels, _ = soundfile.read(
        file, dtype="int16", samplerate=RATE, channels=1, format="RAW", subtype="ULAW"
    )
    assert set(table.tolist()) == set(levels.tolist())
    nearest = np.abs(every[:, None] - np.unique(levels).astype(int)).min(axis=1)
    assert np.array_equal(np.abs(table[every] - every), nearest)


def test_nothing_is_clipped(calls):
    for samples in calls:
        for side in samples.T.astype(int):
            assert 2000 < np.abs(side).max() <= 32124
            assert np.mean(np.abs(side) == np.abs(side).max()) < 0.001


def test_a_shout_is_turned_down_not_clipped():
    loud = Session(level=10.0)
    speech = voices.send(speak(make_voices(1, seeded(0))[0], loud, 3.0, seeded(0)), loud)
    heard = voices.receive(speech, np.zeros_like(speech), loud, seeded(0))
    assert np.abs(speech).max() > 2.0
    assert np.abs(heard).max() == pytest.approx(0.95)
    assert np.corrcoef(heard, speech)[0, 1] > 0.999


def test_sound_is_in_the_telephone_band(calls):
    for samples in calls:
        for side in samples.T:
            frequency, power = welch(side.astype(float), RATE, nperseg=512)
            inside = (frequency >= 300) & (frequency <= 3400)
            near = (frequency >= 250) & (frequency <= 3450)
            assert power[inside].sum() > 0.8 * power.sum()
            assert power[near].sum() > 0.99 * power.sum()
            for outside in (frequency < 150, frequency > 3650):
                assert power[outside].mean() < 0.003 * power[inside].mean()


def test_a_line_colours_the_sound():
    white, flat = seeded(0).standard_normal(20 * RATE), (0.0,) * len(voices.LINE_POINTS)
    line = (0.0, -6.0, 3.0, 0.0, 6.0, -3.0, 0.0)
    frequency, coloured = welch(voices._band(white, line), RATE, nperseg=512)
    _, plain = welch(voices._band(white, flat), RATE, nperseg=512)
    at = [np.abs(frequency - point).argmin() for point in voices.LINE_POINTS[1:-1]]
    assert np.allclose(10 * np.log10(coloured[at] / plain[at]), line[1:-1], atol=1.2)


def test_sides_take_turns(calls):
    for samples in calls:
        level = np.stack([loudness(side) for side in samples.T])
        speaking = level > level.max(axis=1, keepdims=True) - 30
        assert (speaking.mean(axis=1) > 0.2).all()
        assert (speaking[0] & speaking[1]).mean() < 0.15
        for side in (0, 1):
            assert np.median(level[side][~speaking[side]]) < level[side].max() - 36


def test_crosstalk_is_faint_and_late():
    other = seeded(0).standard_normal(RATE)
    other[-RATE // 100 :] = 0.0  # nobody speaks at the very end
    silent = Session(noise=-90.0, crosstalk=-40.0)
    heard = voices.receive(np.zeros(RATE), 0.1 * other, silent, seeded(1))
    assert np.allclose(heard[80:], 0.001 * other[:-80], atol=2e-5)


def test_first_voice_is_on_the_first_channel():
    usual = make_voices(1, seeded(0))[0]
    low, high = replace(usual, pitch=100.0), replace(usual, pitch=220.0)
    for samples, expected in (
        (call(low, high, seeded(1), 15.0), (100.0, 220.0)),
        (call(high, low, seeded(1), 15.0), (220.0, 100.0)),
    ):
        for channel in (0, 1):
            found, periodic = pitches(samples[:, channel])
            assert np.median(found[periodic > 0.25]) == pytest.approx(expected[channel], rel=0.2)


def test_calls_are_reproducible_and_differ():
    one, two = make_voices(2, seeded(0))
    assert np.array_equal(call(one, two, seeded(1), 5.0), call(one, two, seeded(1), 5.0))
    assert not np.array_equal(call(one, two, seeded(1), 5.0), call(one, two, seeded(2), 5.0))


def test_short_calls_have_two_speakers():
    one, two = make_voices(2, seeded(0))
    for seed in range(20):
        assert {side for side, _, _ in voices._turns(5.0, seeded(seed))} == {0, 1}
    with pytest.raises(SpklinkError, match="at least 5"):
        call(one, two, seeded(0), 4.0)


# --- a database ----------------------------------------------------------------------------------


def test_same_seed_same_bytes(database, tmp_path):
    paths = write_database(tmp_path, seed=3, seconds=(5.0, 6.0))
    assert sorted(paths) == sorted(p for p in tmp_path.rglob("*") if p.is_file())
    for path in paths:
        assert path.read_bytes() == (database / path.relative_to(tmp_path)).read_bytes()


def test_another_seed_is_another_database(database):
    tables = [voices.as_table(voices.demo_calls(seeded(s)), seeded(s)) for s in (3, 4)]
    assert not np.array_equal(tables[0].people, tables[1].people)


def test_shape_of_the_database(database):
    table = read_conversations(database / "conversations.csv")
    cliques = find_cliques(table)
    sizes, counts = np.unique(cliques.size, return_counts=True)
    assert dict(zip(sizes.tolist(), counts.tolist(), strict=True)) == {
        1: 2, 2: 15, 3: 3, 4: 6, 5: 2, 6: 1,
    }  # fmt: skip
    assert len(table) == 81
    assert len(table.speakers) == 91
    assert sorted(cliques.size[~cliques.resolvable].tolist()) == [1, 1, 2]
    assert cliques.speakers.min() == 2
    assert cliques.speakers.max() == 5


def test_files_can_be_read(database):
    table = read_conversations(database / "conversations.csv")
    for (name,) in table.audio:
        file = soundfile.info(database / name)
        assert (file.samplerate, file.channels, file.subtype) == (RATE, 2, "ULAW")
        assert 5.0 <= file.duration <= 6.0
    assert len({(database / name).read_bytes() for (name,) in table.audio}) == len(table)


def test_key_goes_with_the_conversations(database):
    table = read_conversations(database / "conversations.csv")
    labels = read_key(database / "key.csv", table)
    assert labels.foreign == 0
    assert 0.3 < np.mean(labels.bits) < 0.7
    rows = [line.split(",") for line in (database / "key.csv").read_text().splitlines()[1:]]
    assert [(name, int(channel)) for name, channel, _ in rows] == [
        (name, channel) for name in table.ids for channel in (1, 2)
    ]
    for m in range(len(table)):
        assert {rows[2 * m][2], rows[2 * m + 1][2]} == set(table.names(m))


def test_key_says_who_is_heard(tmp_path, monkeypatch):
    """Every channel carries the voice that the key names: here each voice is one level."""
    levels = np.unique(voices._mu_law_table())

    def hold(voice_1, voice_2, rng, seconds):
        return np.full((100, 2), [voice_1, voice_2], np.int16)

    monkeypatch.setattr(voices, "call", hold)
    monkeypatch.setattr(voices, "make_voices", lambda count, rng: levels[:count])
    write_database(tmp_path, seed=3)
    table = read_conversations(tmp_path / "conversations.csv")
    rows = [line.split(",") for line in (tmp_path / "key.csv").read_text().splitlines()[1:]]
    for name, channel, speaker in rows:
        samples, _ = soundfile.read(tmp_path / "audio" / f"{name}.wav", dtype="int16")
        assert (samples[:, int(channel) - 1] == levels[table.speakers.index(speaker)]).all()
