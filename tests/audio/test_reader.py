import kaldiio
import numpy as np
import pytest
import soundfile

from espnet_ext.audio.reader import Recording, read_recordings
from espnet_ext.errors import UserError

SAMPLES = np.random.default_rng(0).integers(-3000, 3000, 1600).astype("int16")
KINDS = {
    "wav": {},
    "wav of ESPnet": {"write_function": "soundfile", "write_kwargs": {"format": "WAV"}},
    "flac of ESPnet": {"write_function": "soundfile", "write_kwargs": {"format": "FLAC"}},
}


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def archive(request, tmp_path):
    path = tmp_path / "a.ark"
    with open(path, "wb") as stream:
        kaldiio.save_ark(stream, {"u1": (16000, SAMPLES[:800]), "u2": (16000, SAMPLES)}, **request.param)
    return path


def offset(archive):
    """Where the entry of u2 begins."""
    return archive.read_bytes().index(b"u2 ") + 3


def test_every_kind_of_archive_is_read_at_the_same_loudness(archive, tmp_path):
    (tmp_path / "wav.scp").write_text(f"u2 {archive}:{offset(archive)}\n")
    (tmp_path / "segments").write_text("part u2 0.025 0.05\n")
    (whole,) = read_recordings(tmp_path / "wav.scp")
    np.testing.assert_array_equal(whole.read(), SAMPLES.astype("float32") / 2**15)
    (part,) = read_recordings(tmp_path / "wav.scp", tmp_path / "segments")
    np.testing.assert_array_equal(part.read(), SAMPLES[400:800].astype("float32") / 2**15)


def test_a_wrong_place_in_an_archive_is_named(archive):
    right = {3, offset(archive)}
    places = {*range(40), archive.stat().st_size, 10**9} - right
    named = 0
    for place in places:
        try:
            Recording("u2", f"{archive}:{place}").read()
        except UserError as error:
            named += str(error).startswith(f"u2: cannot read audio {archive}:{place}: ")
    assert named >= len(places) - 2  # one may look like an entry by chance


@pytest.mark.parametrize("archive", [KINDS["flac of ESPnet"]], indirect=True)
def test_an_archive_as_stage_3_writes_it_that_is_cut_short_is_named(archive):
    place = offset(archive)
    archive.write_bytes(archive.read_bytes()[: place + 200])
    with pytest.raises(UserError, match=rf"u2: .*{archive}:{place}"):
        Recording("u2", f"{archive}:{place}").read()


@pytest.fixture
def wav(tmp_path):
    soundfile.write(tmp_path / "a.wav", SAMPLES, 16000)
    return tmp_path / "a.wav"


def test_a_wav_that_is_cut_short_is_named_unless_the_segment_is_there(wav):
    wav.write_bytes(wav.read_bytes()[:-1000])
    with pytest.raises(UserError, match=r"u: .*a\.wav is cut short: 1100 of 1600 samples"):
        Recording("u", str(wav)).read()
    np.testing.assert_array_equal(Recording("u", str(wav), 0, 0.05).read(), SAMPLES[:800].astype("float32") / 2**15)
    with pytest.raises(UserError, match="is cut short: 300 of 600 samples"):
        Recording("u", str(wav), 0.05, 0.0875).read()
    wav.write_bytes(wav.read_bytes()[:44])
    with pytest.raises(UserError, match="is cut short: 0 of 1600 samples"):
        Recording("u", str(wav)).read()


@pytest.mark.parametrize("size", [0, 0x7FFFF000, 0xFFFFFFFF])
@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24", "FLOAT"])
def test_a_wav_whose_size_was_left_open_is_read_to_its_end(wav, size, subtype):
    soundfile.write(wav, SAMPLES.astype("float32") / 2**15, 16000, subtype)
    whole, unknown = wav.read_bytes(), size.to_bytes(4, "little")
    place = whole.index(b"data") + 4
    wav.write_bytes(whole[:4] + unknown + whole[8:place] + unknown + whole[place + 4 :])
    for start, end in ((None, None), (0.025, 0.05)):
        first, last = (0, 1600) if start is None else (400, 800)
        samples = Recording("u", str(wav), start, end).read()[: last - first]
        np.testing.assert_array_equal(samples, SAMPLES[first:last].astype("float32") / 2**15)


def test_a_wav_without_samples_but_with_other_chunks_stays_empty(wav):
    soundfile.write(wav, SAMPLES[:0], 16000)
    content = wav.read_bytes() + b"LIST" + (100).to_bytes(4, "little") + b"x" * 100
    wav.write_bytes(content[:4] + (len(content) - 8).to_bytes(4, "little") + content[8:])
    assert not len(Recording("u", str(wav)).read())
