import os
import re
import shutil
import struct
import subprocess
import sys

import dump_audio
import mustc_split
import numpy as np
import prepare_mustc
import pytest
import soundfile
import validate_data_dir
from conftest import RATE, RECIPE, Release
from kaldi_dir import read_segments, validate
from mustc_split import read_entries, talk_id

from espnet_ext.audio.reader import read_recordings
from espnet_ext.errors import UserError
from espnet_ext.files import read_lines, read_table

TABLES = {"wav.scp", "segments", "utt2spk", "spk2utt", "text.tc.de", "text.tc.en", "text.lc.rm.en", "report.tsv"}


def report(directory, action):
    """Rows of the report that tell of an action: (file, line, utterance, reason, detail)."""
    rows = [line.split("\t") for line in read_lines(directory / "report.tsv")]
    assert rows[0] == ["file", "line", "utterance", "action", "reason", "detail"]
    return [(file, int(line), *rest[:1], *rest[2:]) for file, line, *rest in rows[1:] if rest[1] == action]


def test_writes_a_valid_directory_for_each_split_and_one_of_talks_for_each_test_set(release, prepare):
    data = prepare()
    for split in release.SPLITS:
        assert validate(data / f"{split}.en-de") == 2
        assert {path.name for path in (data / f"{split}.en-de").iterdir()} == TABLES
    for split in ("dev", "tst-COMMON", "tst-HE"):
        talks = data / f"{split}.en-de_talks"
        assert validate(talks) == 1
        assert read_table(talks / "text.tc.de") == {"ted_00001": "Keine Panik, Nummer 0! Keine Panik, Nummer 1!"}
    assert not (data / "train.en-de_talks").exists()


def test_the_reference_segments_of_talks_are_in_the_order_of_the_audio(release, prepare):
    release.write_wav("dev", "ted_2.wav", 9.0)
    entries = [release.segment(5, 1, "ted_2.wav"), release.segment(1, 1), release.segment(0, 1, "ted_2.wav")]
    release.write_split("dev", entries, de=["zwei spät", "eins", "zwei früh"])
    talks = prepare() / "dev.en-de_talks"
    assert list(read_table(talks / "reference_segments")) == ["ted_00001-00001", "ted_00002-00002", "ted_00002-00001"]
    assert read_table(talks / "text.tc.de")["ted_00002"] == "zwei früh zwei spät"


@pytest.mark.parametrize("lang", ["de", "es", "fr", "it", "nl", "pt", "ro", "ru", "zh", "ja"])
@pytest.mark.parametrize(
    "entry",
    [
        "{duration: 1.5, offset: 0.25, speaker_id: spk.1, wav: ted_1.wav}",
        "{duration: 1.5, offset: 0.25, rW: 3, uW: 0, speaker_id: spk.1, wav: ted_1.wav}",
        "{offset: 0.25, wav: ted_1.wav, duration: 1.5}",
    ],
    ids=["v1", "v2", "bare"],
)
def test_every_pair_and_every_version_of_the_yaml(tmp_path, lang, entry):
    release = Release(tmp_path / "mustc", lang)
    for split in release.SPLITS[:3]:
        release.write_split(split, [entry])
    shutil.rmtree(release.data("tst-HE"))
    prepare_mustc.main(["--mustc_dir", str(release.root), "--tgt_lang", lang, "--data_dir", str(tmp_path / "data")])
    names = {path.name for path in (tmp_path / "data").iterdir() if path.is_dir()}
    assert names == {f"{s}.en-{lang}" for s in ("train", "dev", "dev", "tst-COMMON")} | {
        f"{s}.en-{lang}_talks" for s in ("dev", "tst-COMMON")
    }
    (segment,) = read_segments(tmp_path / "data" / f"dev.en-{lang}" / "segments").values()
    assert (segment.start, segment.end) == (0.25, 1.75)


def test_texts_are_true_case_target_and_lower_case_source_without_punctuation(prepare):
    train = prepare() / "train.en-de"
    assert read_table(train / "text.tc.de")["ted_00001-00001"] == "Keine Panik, Nummer 0!"
    assert read_table(train / "text.lc.rm.en")["ted_00001-00001"] == "don't panic number 0"


def test_ids_sort_as_talks_and_segments_do(release, prepare):
    names = ["ted_2.wav", "ted_10.wav", "ted_1.wav"]
    for name in names:
        release.write_wav("train", name, 60.0)
    release.write_split("train", [release.segment(i, 0.5, name) for name in names for i in range(12)])
    train = prepare() / "train.en-de"
    validate(train)
    ids = list(read_table(train / "utt2spk"))
    assert ids[0] == "ted_00001-00001" and ids[-1] == "ted_00010-00012"
    starts = [segment.start for segment in read_segments(train / "segments").values()]
    assert starts == [float(i) for _ in names for i in range(12)]
    assert list(read_table(train / "spk2utt")) == [talk_id(name) for name in ("ted_1.wav", "ted_2.wav", "ted_10.wav")]


def test_talks_whose_names_begin_with_another_sort_as_their_utterances(release, prepare):
    names = ["a.wav", "a-b.wav", "a.b.wav", "a1.wav", "aB.wav", "a_0.wav", "ab.wav"]
    for name in names:
        release.write_wav("train", name, 2.0)
    release.write_split("train", [release.segment(0, 1, name) for name in names])
    utt2spk = read_table(prepare() / "train.en-de" / "utt2spk")
    assert list(utt2spk.values()) == ["a", "a.b", "a00001", "aB", "a_00000", "a_b", "ab"]


def test_names_with_blanks_and_other_letters_give_ids_without(release, prepare):
    names = ["my talk\u00a0é.wav", "talk (1).wav", "ted_1_2.wav", "ted_1.wav"]
    for name in names:
        release.write_wav("train", name, 2.0)
    release.write_split("train", [release.segment(0, 1, f'"{name}"') for name in names])
    train = prepare() / "train.en-de"
    assert validate(train) == 4
    assert set(read_table(train / "wav.scp")) == {"my_talk_é", "talk__00001_", "ted_00001_00002", "ted_00001"}
    assert [recording.read().size for recording in read_recordings(train / "wav.scp", train / "segments")] == [
        16000
    ] * 4


def test_interleaved_talks_keep_their_own_numbers(release, prepare):
    release.write_wav("train", "ted_2.wav", 4.0)
    release.write_split("train", [release.segment(i, 1, f"ted_{1 + i % 2}.wav") for i in range(4)])
    train = prepare() / "train.en-de"
    assert {u: s.start for u, s in read_segments(train / "segments").items()} == {
        "ted_00001-00001": 0, "ted_00001-00002": 2, "ted_00002-00001": 1, "ted_00002-00002": 3
    }  # fmt: skip


def test_every_change_of_a_text_is_reported_with_file_and_line(release, prepare):
    entries = [release.segment(0, 1), release.segment(1, 1), release.segment(2, 1)]
    release.write_split(
        "train", entries,
        en=["fine", " twice  over ", "caf" + "e\u0301"],
        de=["\ufeffEins\u2028zwei\u00a0 drei\x85vier\r", "Fünf\x0csechs\u200b", "so\u00adft \ufffd"],
    )  # fmt: skip
    train = prepare() / "train.en-de"
    assert list(read_table(train / "text.tc.de").values()) == ["Eins zwei drei vier", "Fünf sechs", "soft \ufffd"]
    assert list(read_table(train / "text.tc.en").values()) == ["fine", "twice over", "café"]
    blanks = "double, leading or trailing blanks"
    assert [(file, line, reason) for file, line, _, reason, _ in report(train, "changed")] == [
        ("train/txt/train.de", 1, "U+000D to blank"),
        ("train/txt/train.de", 1, "U+0085 to blank"),
        ("train/txt/train.de", 1, "U+00A0 to blank"),
        ("train/txt/train.de", 1, "U+2028 to blank"),
        ("train/txt/train.de", 1, "U+FEFF removed"),
        ("train/txt/train.de", 1, blanks),
        ("train/txt/train.en", 2, blanks),
        ("train/txt/train.de", 2, "U+000C to blank"),
        ("train/txt/train.de", 2, "U+200B removed"),
        ("train/txt/train.en", 3, "to NFC"),
        ("train/txt/train.de", 3, "U+00AD removed"),
        ("train/txt/train.de", 3, "U+FFFD kept: a lost character"),
    ]


def test_a_text_that_is_empty_stays_with_its_segment_and_is_reported(release, prepare):
    entries = [release.segment(0, 1), release.segment(1, 1)]
    release.write_split("tst-COMMON", entries, de=["\u3000", "zwei"])
    tst = prepare() / "tst-COMMON.en-de"
    assert read_table(tst / "text.tc.de", allow_empty=True) == {"ted_00001-00001": "", "ted_00001-00002": "zwei"}
    assert report(tst, "kept") == [("tst-COMMON/txt/tst-COMMON.de", 1, "ted_00001-00001", "empty text", "")]
    assert read_table(tst.with_name("tst-COMMON.en-de_talks") / "text.tc.de") == {"ted_00001": "zwei"}


def test_text_that_is_not_utf_8_is_named_by_file_and_line(release, prepare, tmp_path):
    text = release.data("dev") / "txt" / "dev.de"
    text.write_bytes("gut\nschön\n".encode("latin-1"))
    with pytest.raises(UserError, match=r"dev\.de:2: not UTF-8"):
        prepare()
    assert not list((tmp_path / "data").glob("[!.]*"))


@pytest.mark.parametrize("side", ["en", "de"])
@pytest.mark.parametrize("lines", [["a"], ["a", "b", "c"]])
def test_a_count_mismatch_stops_before_anything_is_written(release, prepare, tmp_path, side, lines):
    entries = [release.segment(0, 1), release.segment(1, 1)]
    release.write_split("tst-HE", entries, **{side: lines})
    with pytest.raises(UserError, match=rf"2 segments but tst-HE\.{side} has {len(lines)} lines"):
        prepare()
    assert not list((tmp_path / "data").glob("[!.]*"))


BAD = {
    "past the end": ("3.0", "1.5", "ends behind its wav"),
    "starting after the end": ("9.0", "1.0", "starts behind its wav"),
    "starting at the end": ("4.0", "0.01", "starts behind its wav"),
    "no duration": ("1.0", "0", "duration not positive"),
    "negative duration": ("1.0", "-1", "duration not positive"),
    "negative offset": ("-0.5", "1.0", "starts before its wav"),
    "not a number": (".nan", "1.0", "time not finite"),
    "infinite": ("1.0", ".inf", "time not finite"),
    "shorter than a sample": ("1.0", "0.000001", "no sample"),
}


@pytest.mark.parametrize(("offset", "duration", "reason"), BAD.values(), ids=BAD.keys())
def test_a_bad_segment_is_dropped_and_listed_in_train_and_an_error_elsewhere(
    release, prepare, capsys, offset, duration, reason
):
    entries = [release.segment(0, 1), release.segment(offset, duration), release.segment(2, 1)]
    release.write_split("train", entries)
    train = prepare() / "train.en-de"
    assert list(read_table(train / "utt2spk")) == ["ted_00001-00001", "ted_00001-00003"]
    ((file, line, utterance, why, _),) = report(train, "dropped")
    assert (file, line, utterance, why) == ("train/txt/train.yaml", 2, "ted_00001-00002", reason)
    said = capsys.readouterr().out
    assert "kept 2 of 3 segments" in said and f"dropped: 1 {reason} (listed in report.tsv)" in said
    for split in ("dev", "tst-COMMON", "tst-HE"):
        release.write_split(split, entries)
        with pytest.raises(UserError, match=rf"{split}\.yaml: entry 2 \(ted_1\.wav\): {reason}"):
            prepare()
        release.write_split(split, [release.segment(0, 1)])


def test_a_missing_wav_is_a_bad_segment(release, prepare):
    release.write_split("train", [release.segment(0, 1), release.segment(0, 1, "ted_404.wav")])
    assert report(prepare() / "train.en-de", "dropped")[0][2:4] == ("ted_00404-00001", "wav missing or unreadable")
    release.write_split("dev", [release.segment(0, 1, "ted_404.wav")])
    with pytest.raises(UserError, match=r"entry 1 \(ted_404\.wav\): wav missing or unreadable; a test or dev"):
        prepare()


def test_a_segment_that_repeats_an_earlier_one_is_dropped_in_train_and_kept_in_test_sets(release, prepare):
    entries = [release.segment(0, 1), release.segment(0, 1), release.segment(0, 1)]
    for split in ("train", "dev"):
        release.write_split(split, entries, en=["same", "same", "other"], de=["gleich", "gleich", "gleich"])
    data = prepare()
    ((_, line, _, reason, detail),) = report(data / "train.en-de", "dropped")
    assert (line, reason, detail) == (2, "repeats an earlier one", "line 1")
    assert validate(data / "train.en-de") == 2
    assert validate(data / "dev.en-de") == 3


def test_whole_numbers_and_tiny_overruns_are_fine_and_reported(release, prepare):
    release.write_split("dev", [release.segment(0, 2), release.segment(2, 2.01), release.segment(-0.01, 1)])
    dev = prepare() / "dev.en-de"
    assert [(s.start, s.end) for s in read_segments(dev / "segments").values()] == [(0.0, 2.0), (2.0, 4.0), (0.0, 0.99)]
    assert [(line, detail) for _, line, _, _, detail in report(dev, "moved")] == [
        (2, "from 2.0-4.010000 to 2.0-4.000000 s"),
        (3, "from -0.01-0.990000 to 0.0-0.990000 s"),
    ]


@pytest.mark.parametrize(
    "entry",
    [
        "{duration: 1.0, wav: ted_1.wav}",
        "{duration: long, offset: 0, wav: ted_1.wav}",
        "{duration: true, offset: 0, wav: ted_1.wav}",
        "{duration: 1, offset: , wav: ted_1.wav}",
        "{duration: 1, offset: 0, wav: }",
        "{duration: 1, offset: 0, wav: ../../dev/wav/ted_1.wav}",
        '{duration: 1, offset: 0, wav: "ted_1.wav\\n"}',
        "[1, 2, ted_1.wav]",
        "7",
    ],
)
def test_a_malformed_entry_is_named(release, prepare, entry):
    release.write_split("train", [release.segment(0, 1), entry])
    with pytest.raises(UserError, match=r"train\.yaml: entry 2: "):
        prepare()


def test_yaml_is_read_alike_however_it_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(mustc_split, "CHUNK", 100)
    path = tmp_path / "a.yaml"
    items = [f"{{duration: {i}.5, offset: {i}, wav: ted_{i}.wav}}" for i in range(450)]
    entries = []
    for text in (
        "".join(f"- {item}\n" for item in items),
        "---\n# comment\n" + "".join(f"- {item}\r\n\r\n" for item in items) + "...\n",
        "\ufeff" + "".join(f"- {item}\n" for item in items),
        "".join(f"  - {item}\n" for item in items),
        "[" + ",\n".join(items) + "]",
        "".join(f"- duration: {i}.5\n  offset: {i}\n  wav: ted_{i}.wav\n" for i in range(450)),
    ):
        path.write_text(text, encoding="utf-8", newline="")
        entries.append(read_entries(path))
    assert entries[0][449] == {"duration": 449.5, "offset": 449, "wav": "ted_449.wav"}
    assert all(read == entries[0] for read in entries)


def test_a_broken_yaml_is_named_by_its_line(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("- {wav: a}\n" * 3000 + "- {wav: a\n- {wav: b}\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"a\.yaml: not yaml: (?s:.*)line 300[12]"):
        read_entries(path)
    for text in ("", "a: 1\n", "[]\n", "- \n# nothing\n"[4:]):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(UserError, match=r"a\.yaml: holds no segments"):
            read_entries(path)


def test_wavs_that_would_share_an_id_are_refused(release, prepare):
    release.write_wav("train", "ted_01.wav", 4.0)
    release.write_split("train", [release.segment(0, 1), release.segment(0, 1, "ted_01.wav")])
    with pytest.raises(UserError, match="same id ted_00001"):
        prepare()


def wav_header(size, rate=RATE, channels=1):
    fmt = struct.pack("<HHIIHH", 1, channels, rate, 2 * rate * channels & 0xFFFFFFFF, 2 * channels, 16)
    return b"RIFF" + struct.pack("<I", min(36 + size, 2**32 - 1)) + b"WAVEfmt " + struct.pack("<I", 16) + fmt + (
        b"data" + struct.pack("<I", size)
    )  # fmt: skip


PCM = np.arange(4 * RATE, dtype="<i2").tobytes()


@pytest.mark.parametrize(
    "content",
    [
        b"", b"RIFF", b"no audio\n" * 50, wav_header(len(PCM))[:30], wav_header(len(PCM), rate=0) + PCM,
        wav_header(len(PCM), channels=0) + PCM, wav_header(0), wav_header(0) + PCM,
    ],
    ids=["empty", "magic only", "text", "cut header", "rate 0", "no channel", "no samples", "says no samples"],
)  # fmt: skip
def test_a_wav_with_a_broken_header_is_bad_in_train_and_an_error_elsewhere(release, prepare, content):
    release.write_wav("train", "ted_2.wav", 4.0)
    release.write_split("train", [release.segment(0, 1), release.segment(0, 1, "ted_2.wav")])
    (release.data("train") / "wav" / "ted_1.wav").write_bytes(content)
    train = prepare() / "train.en-de"
    assert list(read_table(train / "utt2spk")) == ["ted_00002-00001"]
    assert list(read_table(train / "wav.scp")) == ["ted_00002"]
    (release.data("dev") / "wav" / "ted_1.wav").write_bytes(content)
    with pytest.raises(UserError, match=r"dev\.yaml: entry 1 \(ted_1\.wav\)"):
        prepare()


@pytest.mark.parametrize("size", [2 * len(PCM), 0xFFFFFFFF, 0x7FFFF600], ids=["twice", "all ones", "sox to a pipe"])
def test_a_header_that_promises_too_much_counts_as_what_is_there(release, prepare, size):
    for split in ("train", "dev"):
        (release.data(split) / "wav" / "ted_1.wav").write_bytes(wav_header(size) + PCM)
    release.write_split("dev", [release.segment(1, 3)])
    dev = prepare() / "dev.en-de"
    validate_data_dir.main([str(dev)])
    (recording,) = read_recordings(dev / "wav.scp", dev / "segments")
    np.testing.assert_array_equal(recording.read() * 2**15, np.frombuffer(PCM, "<i2")[RATE:])


@pytest.mark.parametrize(
    ("rate", "channels", "options"),
    [
        (44100, 2, {"subtype": "PCM_16"}),
        (8000, 1, {"subtype": "PCM_U8"}),
        (48000, 1, {"subtype": "FLOAT"}),
        (16000, 2, {"subtype": "PCM_24"}),
        (22050, 1, {"format": "FLAC"}),
        (32000, 1, {"format": "MP3"}),
        (16000, 1, {"format": "FLAC"}),
    ],
    ids=str,
)
def test_recordings_of_test_sets_are_given_to_the_decoder_as_mono_16_khz(release, prepare, rate, channels, options):
    path = release.data("dev") / "wav" / "ted_1.wav"
    tone = 0.5 * np.sin(2 * np.pi * 440 * np.arange(25 * rate) / rate)
    soundfile.write(path, np.stack([tone] * channels, axis=1), rate, **({"format": "WAV"} | options))
    release.write_split("dev", [release.segment(0.5, 2), release.segment(20, 5)])
    dev = prepare() / "dev.en-de"
    validate_data_dir.main([str(dev), f"{dev}_talks"])
    first, last = read_recordings(dev / "wav.scp", dev / "segments")
    assert first.read().size == 2 * RATE and last.read().size == pytest.approx(5 * RATE, abs=1)
    expected = 0.5 * np.sin(2 * np.pi * 440 * (np.arange(2 * RATE) / RATE + 0.5))
    assert np.abs(first.read() - expected)[RATE // 2 : -RATE // 2].max() < 0.02
    (talk,) = read_recordings(dev.with_name("dev.en-de_talks") / "wav.scp")
    np.testing.assert_array_equal(talk.read()[RATE // 2 : RATE // 2 + 2 * RATE], first.read())


def test_a_recording_that_breaks_off_while_it_is_converted_leaves_nothing(release, prepare, tmp_path):
    path = release.data("dev") / "wav" / "ted_1.wav"
    noise = np.random.default_rng(0).uniform(-0.5, 0.5, 4 * 44100)
    soundfile.write(path, noise, 44100, format="FLAC")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(UserError, match=r"ted_1\.wav: c(annot read audio|ut short)"):
        prepare()
    assert not list((tmp_path / "data").glob("*dev*"))


def test_an_empty_or_missing_release_is_an_error(release, prepare):
    release.write_split("dev", [])
    with pytest.raises(UserError, match="holds no segments"):
        prepare()
    release.root = release.root / "elsewhere"
    with pytest.raises(
        UserError, match=r"no corpus in MuST-C's layout at .*elsewhere/en-de/data; .* download .* or use --corpus mini"
    ):
        prepare()


@pytest.mark.parametrize("lang", ["", "DE", "../de", "de es", "d\u00e9"])
def test_a_language_that_cannot_be_one_is_an_error(release, lang):
    with pytest.raises(UserError, match="--tgt_lang .*: give a language"):
        prepare_mustc.main(["--mustc_dir", str(release.root), "--tgt_lang", lang])


def test_it_is_done_once_and_again_when_the_input_changes(release, prepare, capsys):
    prepare()
    capsys.readouterr()
    prepare()
    assert capsys.readouterr().out.startswith("done already")
    release.write_split("train", [release.segment(0, 1)])
    data = prepare()
    assert validate(data / "train.en-de") == 1


def test_a_split_that_another_release_had_does_not_stay(release, prepare):
    assert (prepare() / "tst-HE.en-de").exists()
    shutil.rmtree(release.data("tst-HE"))
    assert not list(prepare().glob("tst-HE*"))


def test_a_table_that_was_cut_is_written_again(prepare, capsys):
    table = prepare() / "train.en-de" / "text.tc.de"
    whole = table.read_text(encoding="utf-8")
    table.write_text(whole[:10], encoding="utf-8")
    prepare()
    assert table.read_text(encoding="utf-8") == whole


def locales(directory):
    """Names of locales: C, C.UTF-8, what the machine has, and an 8-bit Turkish one compiled here where that works."""
    found = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=True).stdout.split()
    if shutil.which("localedef"):
        name = directory / "tr_TR.ISO-8859-9"
        subprocess.run(["localedef", "-i", "tr_TR", "-f", "ISO-8859-9", name], capture_output=True, check=False)
        found += [name.name] if name.exists() else []
    return {"C", "C.UTF-8", *found[:5], *found[-1:]}


def test_the_same_bytes_under_every_locale(release, tmp_path):
    names = ["ted_b.wav", "ted_B.wav", "ted_a.wav", "ted_1.wav"]
    for name in names:
        release.write_wav("train", name, 4.0)
    entries = [release.segment(i, 1, name) for name in names for i in range(2)]
    release.write_split("train", entries, en=["ISTANBUL IĞDIR É"] * 8, de=["Straße\u00a0ÄÖÜ"] * 8)
    program = RECIPE / "local" / "prepare_mustc.py"
    written = {}
    for number, locale in enumerate(sorted(locales(tmp_path))):
        data = tmp_path / f"data{number}"
        python = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}  # or Python would take UTF-8 for C
        environment = os.environ | {"LC_ALL": locale, "LOCPATH": str(tmp_path)} | python
        command = [sys.executable, program, "--mustc_dir", release.root, "--tgt_lang", "de", "--data_dir", data]
        subprocess.run(command, env=environment, check=True, capture_output=True)
        files = [path for path in sorted(data.rglob("*")) if path.is_file() and path.parent != data]
        written[locale] = {str(path.relative_to(data)): path.read_bytes() for path in files}
    assert len(written) >= 2
    assert all(files == written["C"] for files in written.values())
    keys = [line.split(b" ")[0] for line in written["C"]["train.en-de/utt2spk"].splitlines()]
    assert keys == sorted(keys)
    assert b"istanbul" in written["C"]["train.en-de/text.lc.rm.en"]


def test_the_command_of_the_docs_checks_a_directory(prepare, tmp_path):
    (command,) = re.findall(
        r"`(python local/[^`]+)`", (RECIPE.parents[1] / "docs" / "data.md").read_text(encoding="utf-8")
    )
    prepare()
    (tmp_path / "local").symlink_to(RECIPE / "local")
    dump_audio.main(["--data", str(tmp_path / "data/dev.en-de"), "--output_dir", str(tmp_path / "dump/dev.en-de")])
    checked = subprocess.run(command.split(), cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert checked == "data/dev.en-de: valid, 2 utterances\ndump/dev.en-de: valid, 2 utterances\n"
