import pytest
from kaldi_dir import read_segments, validate
from prepare_mustc import lower_without_punctuation, talk_id

from espnet_ext.errors import UserError
from espnet_ext.files import read_table

TABLES = {"wav.scp", "segments", "utt2spk", "spk2utt", "text.tc.de", "text.tc.en", "text.lc.rm.en"}


def test_writes_a_valid_directory_for_each_split_and_one_of_talks(release, prepare):
    data = prepare()
    for split in release.SPLITS:
        assert validate(data / f"{split}.en-de") == 2
        assert {path.name for path in (data / f"{split}.en-de").iterdir()} == TABLES
    talks = data / "tst-COMMON.en-de_talks"
    assert validate(talks) == 1
    assert read_table(talks / "text.tc.de") == {"ted_00001": "Keine Panik, Nummer 0! Keine Panik, Nummer 1!"}


def test_texts_are_true_case_target_and_lower_case_source_without_punctuation(prepare):
    train = prepare() / "train.en-de"
    assert read_table(train / "text.tc.de")["ted_00001_00001"] == "Keine Panik, Nummer 0!"
    assert read_table(train / "text.lc.rm.en")["ted_00001_00001"] == "don't panic number 0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It’s “fine” — isn't it?", "it's fine isn't it"),
        ("'Tis the boys' well-known café…", "tis the boys well known café"),
        ("(Applause)", "applause"),
        ("♫ ♫", ""),
    ],
)
def test_punctuation(text, expected):
    assert lower_without_punctuation(text) == expected


def test_ids_sort_as_talks_and_segments_do(release, prepare):
    names = ["ted_2.wav", "ted_10.wav", "ted_1.wav"]
    for name in names:
        release.write_wav("train", name, 60.0)
    release.write_split("train", [release.segment(i, 0.5, name) for name in names for i in range(12)])
    train = prepare() / "train.en-de"
    validate(train)
    ids = list(read_table(train / "utt2spk"))
    assert ids[0] == "ted_00001_00001" and ids[-1] == "ted_00010_00012"
    starts = [segment.start for segment in read_segments(train / "segments").values()]
    assert starts == [float(i) for _ in names for i in range(12)]
    assert list(read_table(train / "spk2utt")) == [talk_id(name) for name in ("ted_1.wav", "ted_2.wav", "ted_10.wav")]


def test_white_space_of_any_kind_becomes_one_blank_and_lines_stay_lines(release, prepare):
    release.write_split(
        "train",
        [release.segment(0, 1), release.segment(1, 1)],
        de=["\ufeffEins\u2028zwei\u00a0 drei\x85vier ", "Fünf\x0csechs"],
    )
    texts = read_table(prepare() / "train.en-de" / "text.tc.de")
    assert list(texts.values()) == ["Eins zwei drei vier", "Fünf sechs"]


@pytest.mark.parametrize("side", ["en", "de"])
def test_a_count_mismatch_stops_before_anything_is_written(release, prepare, tmp_path, side):
    entries = [release.segment(0, 1), release.segment(1, 1)]
    release.write_split("tst-HE", entries, **{side: ["a", "b", "c"]})
    with pytest.raises(UserError, match=rf"2 segments but tst-HE\.{side} has 3 lines"):
        prepare()
    assert not list((tmp_path / "data").glob("[!.]*"))


BAD = {
    "past the end": ("3.0", "1.5"),
    "starting after the end": ("9.0", "1.0"),
    "no duration": ("1.0", "0"),
    "negative duration": ("1.0", "-1"),
    "negative offset": ("-0.5", "1.0"),
    "not a number": (".nan", "1.0"),
    "infinite": ("1.0", ".inf"),
}


@pytest.mark.parametrize(("offset", "duration"), BAD.values(), ids=BAD.keys())
def test_a_bad_segment_is_dropped_and_listed_in_train_and_an_error_elsewhere(release, prepare, offset, duration):
    entries = [release.segment(0, 1), release.segment(offset, duration), release.segment(2, 1)]
    release.write_split("train", entries)
    train = prepare() / "train.en-de"
    assert list(read_table(train / "utt2spk")) == ["ted_00001_00001", "ted_00001_00003"]
    assert list(read_table(train / "dropped_segments")) == ["ted_00001_00002"]
    release.write_split("tst-COMMON", entries)
    with pytest.raises(UserError, match=r"tst-COMMON\.yaml: entry 2 \(ted_1\.wav\)"):
        prepare()


def test_a_missing_wav_is_a_bad_segment(release, prepare):
    release.write_split("train", [release.segment(0, 1), release.segment(0, 1, "ted_404.wav")])
    assert "ted_404.wav" in read_table(prepare() / "train.en-de" / "dropped_segments")["ted_00404_00001"]
    release.write_split("dev", [release.segment(0, 1, "ted_404.wav")])
    with pytest.raises(UserError, match="wav missing or unreadable"):
        prepare()


def test_whole_numbers_and_tiny_overruns_are_fine(release, prepare):
    release.write_split("dev", [release.segment(0, 2), release.segment(2, 2.01), release.segment(-0.01, 1)])
    segments = list(read_segments(prepare() / "dev.en-de" / "segments").values())
    assert [(s.start, s.end) for s in segments] == [(0.0, 2.0), (2.0, 4.0), (0.0, 0.99)]


@pytest.mark.parametrize(
    "entry", ["{duration: 1.0, wav: ted_1.wav}", "{duration: long, offset: 0, wav: ted_1.wav}", "7"]
)
def test_a_malformed_entry_is_named(release, prepare, entry):
    release.write_split("dev", [release.segment(0, 1), entry])
    with pytest.raises(UserError, match=r"dev\.yaml: entry 2"):
        prepare()


def test_wavs_that_would_share_an_id_are_refused(release, prepare):
    release.write_wav("train", "ted_01.wav", 4.0)
    release.write_split("train", [release.segment(0, 1), release.segment(0, 1, "ted_01.wav")])
    with pytest.raises(UserError, match="same id ted_00001"):
        prepare()


def test_an_empty_or_missing_release_is_an_error(release, prepare):
    release.write_split("dev", [])
    with pytest.raises(UserError, match="holds no segments"):
        prepare()
    release.root = release.root / "elsewhere"
    with pytest.raises(UserError, match="no corpus in MuST-C's layout"):
        prepare()


def test_it_is_done_once_and_again_when_the_input_changes(release, prepare, capsys):
    prepare()
    capsys.readouterr()
    prepare()
    assert capsys.readouterr().out.startswith("done already")
    release.write_split("train", [release.segment(0, 1)])
    data = prepare()
    assert validate(data / "train.en-de") == 1


def test_a_table_that_was_cut_is_written_again(prepare, capsys):
    table = prepare() / "train.en-de" / "text.tc.de"
    whole = table.read_text(encoding="utf-8")
    table.write_text(whole[:10], encoding="utf-8")
    prepare()
    assert table.read_text(encoding="utf-8") == whole


def test_validation_names_what_differs(prepare):
    train = prepare() / "train.en-de"
    text = train / "text.tc.de"
    text.write_text(text.read_text(encoding="utf-8").split("\n")[0] + "\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"text\.tc\.de: ted_00001_00002 is not in both"):
        validate(train)
