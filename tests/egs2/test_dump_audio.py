import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import dump_audio
import filter_length
import numpy as np
import perturb_speed
import prepare_mustc
import pytest
import soundfile
import validate_data_dir
from conftest import RECIPE
from espnet2.train.dataset import ESPnetDataset
from espnet_jobs import TrainData
from kaldi_dir import validate, write_table
from killing import file_size_limit, fork

import espnet_ext.cli
from espnet_ext.audio.reader import read_recordings
from espnet_ext.errors import UserError
from espnet_ext.files import read_table

FORMATS = ["flac", "wav", "ark"]


def dump(data, output, *options):
    """Runs the dump; the samples of each utterance as our decoder reads them."""
    dump_audio.main(["--data", str(data), "--output_dir", str(output), *options])
    return {recording.key: recording.read() for recording in read_recordings(output / "wav.scp")}


@pytest.mark.parametrize("audio_format", FORMATS)
def test_decoder_and_training_read_exactly_the_samples_of_each_segment(release, prepare, tmp_path, audio_format):
    audio = dump(prepare() / "train.en-de", tmp_path / "dump", "--audio_format", audio_format)
    talk, _ = soundfile.read(release.data("train") / "wav" / "ted_1.wav", dtype="float32")
    np.testing.assert_array_equal(audio["ted_00001-00001"], talk[4000:28000])
    np.testing.assert_array_equal(audio["ted_00001-00002"], talk[32000:56000])
    assert read_table(tmp_path / "dump" / "utt2num_samples") == dict.fromkeys(audio, "24000")
    validate_data_dir.main([str(tmp_path / "dump")])

    filter_length.main(["--dump", str(tmp_path / "dump"), "--output_dir", str(tmp_path / "train"), "--tgt_lang", "de"])
    data = TrainData("st", "de", tmp_path / "train", tmp_path / "train", tmp_path)
    options = data.arguments()
    entry = options[options.index("--train_data_path_and_name_and_type") + 1]
    trained_on = ESPnetDataset([tuple(entry.split(","))])
    for utterance, samples in audio.items():
        np.testing.assert_array_equal(trained_on[utterance][1]["speech"], samples)


def test_an_archive_holds_one_talk_and_nothing_else_is_written(release, prepare, tmp_path):
    release.write_wav("train", "ted_2.wav", 3.0)
    release.write_split("train", [release.segment(i, 1, f"ted_{1 + i % 2}.wav") for i in range(3)])
    dump(prepare() / "train.en-de", tmp_path / "dump", "--audio_format", "ark")
    archives = sorted(path.relative_to(tmp_path / "dump") for path in (tmp_path / "dump").rglob("*.*"))
    assert [str(path) for path in archives if path.suffix in (".ark", ".wav", ".flac")] == [
        "audio/ted_00001/audio.ark", "audio/ted_00002/audio.ark"
    ]  # fmt: skip


@pytest.mark.parametrize("audio_format", FORMATS)
def test_any_rate_and_channels_become_16_khz_mono(release, prepare, tmp_path, audio_format):
    release.write_wav("train", "ted_1.wav", 4.0, rate=44100, channels=2)
    audio = dump(prepare() / "train.en-de", tmp_path / "dump", "--audio_format", audio_format)
    assert audio["ted_00001-00002"].shape == (24000,)
    assert 0.1 < audio["ted_00001-00002"].std() < 0.3


def on_a_full_disk(main, *options):
    """The output of a program that can write no file above 2000 bytes."""

    def work():
        file_size_limit(2000)
        espnet_ext.cli.run(lambda: main(list(map(str, options))))

    status, output = fork(work)
    assert status == 2 and "Traceback" not in output
    return output.strip().split("\n")[-1]


@pytest.mark.parametrize("audio_format", FORMATS)
def test_a_full_disk_is_one_line_and_leaves_no_audio(prepare, tmp_path, audio_format):
    data, output = prepare() / "train.en-de", tmp_path / "dump"
    said = on_a_full_disk(dump_audio.main, "--data", data, "--output_dir", output, "--audio_format", audio_format)
    assert said.startswith(f"error: {output}/audio/ted_00001: File too large; make room, then run this again")
    assert not list((output / "audio").iterdir())


def test_so_it_is_when_a_recording_is_converted(release, tmp_path):
    release.write_wav("dev", "ted_1.wav", 4.0, rate=8000)
    data = tmp_path / "data"
    options = ("--mustc_dir", release.root, "--tgt_lang", "de", "--data_dir", data)
    said = on_a_full_disk(prepare_mustc.main, *options)
    assert said.startswith("error: ") and "ted_00001.wav: File too large; make room, then run this again" in said
    assert not list(data.glob("*dev*"))


def test_speed_perturbation_shortens_by_its_factor_and_ids_never_collide(prepare, tmp_path):
    data = prepare()
    options = ["--data", str(data / "train.en-de"), "--output_dir", str(data / "train_sp.en-de")]
    perturb_speed.main([*options, "--factors", "0.8", "1.0", "1.25"])
    audio = dump(data / "train_sp.en-de", tmp_path / "dump")
    assert list(audio) == sorted(audio, key=str.encode)
    lengths = {utterance: len(samples) for utterance, samples in audio.items()}
    assert lengths["ted_00001-00001"] == 24000
    assert lengths["sp0.8-ted_00001-00001"] == 30000
    assert lengths["sp1.25-ted_00001-00001"] == 19200
    assert len(lengths) == 6
    assert set(read_table(data / "train_sp.en-de" / "spk2utt")) == {"ted_00001", "sp0.8-ted_00001", "sp1.25-ted_00001"}


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        (["1.0", "0.9", "0.90"], "must differ"),
        (["0.9", "0.90000001"], "must differ"),
        (["0"], "must lie between"),
        (["-1"], "must lie between"),
        (["nan"], "must lie between"),
        (["inf"], "must lie between"),
    ],
)
def test_factors_that_make_no_sense_are_refused(prepare, factors, message):
    train = prepare() / "train.en-de"
    with pytest.raises(UserError, match=message):
        perturb_speed.main(["--data", str(train), "--output_dir", str(train) + "_sp", "--factors", *factors])
    assert not train.with_name("train.en-de_sp").exists()


def test_perturbing_what_is_perturbed_already_is_refused(prepare):
    data = prepare()
    once, twice = data / "once.en-de", data / "twice.en-de"
    perturb_speed.main(["--data", str(data / "train.en-de"), "--output_dir", str(once), "--factors", "1", "0.9"])
    with pytest.raises(UserError, match="ids begin with sp0.9- already"):
        perturb_speed.main(["--data", str(once), "--output_dir", str(twice), "--factors", "1", "0.9"])


def test_more_jobs_than_recordings_are_capped_with_one_line(prepare, tmp_path, capsys):
    data = prepare() / "train.en-de"
    capsys.readouterr()
    audio = dump(data, tmp_path / "dump", "--nj", "32")
    assert len(audio) == 2
    capped = [line for line in capsys.readouterr().out.split("\n") if "1 jobs instead of 32" in line]
    assert len(capped) == 1


@pytest.mark.parametrize("audio_format", FORMATS)
def test_the_same_files_from_one_job_and_from_many(release, prepare, tmp_path, audio_format):
    for number in range(2, 6):
        release.write_wav("train", f"ted_{number}.wav", 2.0)
    release.write_split("train", [release.segment(i % 2, 1, f"ted_{1 + i % 5}.wav") for i in range(20)])
    train = prepare() / "train.en-de"
    written = []
    for nj in ("1", "3"):
        dump(train, tmp_path / "dump", "--nj", nj, "--audio_format", audio_format)
        files = [path for path in (tmp_path / "dump").rglob("*") if path.is_file()]
        written.append({path: path.read_bytes() for path in files})
        shutil.rmtree(tmp_path / "dump")
    assert written[0] == written[1]


@pytest.mark.parametrize("audio_format", FORMATS)
def test_a_killed_dump_goes_on_and_does_not_believe_half_a_talk(release, prepare, tmp_path, capsys, audio_format):
    release.write_wav("train", "ted_2.wav", 3.0)
    release.write_split("train", [release.segment(i, 1, f"ted_{1 + i % 2}.wav") for i in range(3)])
    data, output = prepare() / "train.en-de", tmp_path / "dump"
    whole = dump(data, output, "--audio_format", audio_format)
    (output / ".done").unlink()
    (output / "wav.scp").unlink()
    talk = output / "audio" / "ted_00001"
    (talk / "index").unlink()
    half = output / "audio" / ".ted_00002.1.tmp"
    half.mkdir()
    (half / "rest").write_bytes(b"RIFF")
    kept = (output / "audio" / "ted_00002" / "index").stat().st_mtime_ns
    capsys.readouterr()
    again = dump(data, output, "--audio_format", audio_format)
    assert "1 of 2 recordings were there already" in capsys.readouterr().out
    assert (output / "audio" / "ted_00002" / "index").stat().st_mtime_ns == kept
    assert not half.exists()
    for utterance, samples in whole.items():
        np.testing.assert_array_equal(again[utterance], samples)


def test_a_talk_that_was_deleted_from_a_finished_dump_is_cut_again(prepare, tmp_path, capsys):
    data, output = prepare() / "train.en-de", tmp_path / "dump"
    whole = dump(data, output)
    capsys.readouterr()
    dump(data, output)
    assert capsys.readouterr().out == f"done already: {output}\n"
    shutil.rmtree(output / "audio" / "ted_00001")
    assert dump(data, output).keys() == whole.keys()


def test_killing_the_parent_leaves_no_job_behind_and_the_next_run_is_complete(release, prepare, tmp_path):
    for number in range(12):
        release.write_wav("train", f"ted_{number}.wav", 30.0)
    release.write_split("train", [release.segment(i, 1, f"ted_{n}.wav") for n in range(12) for i in range(30)])
    data, output = prepare() / "train.en-de", tmp_path / "dump"
    options = ["--data", str(data), "--output_dir", str(output), "--nj", "2"]
    run = subprocess.Popen([sys.executable, RECIPE / "local" / "dump_audio.py", *options], stdout=subprocess.DEVNULL)
    while not list((output / "audio").glob("ted_*")):
        time.sleep(0.01)
    children = [int(pid) for pid in Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()]
    assert children
    run.send_signal(signal.SIGKILL)
    run.wait()
    deadline = time.monotonic() + 20
    while any(os.path.exists(f"/proc/{pid}/exe") for pid in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(os.path.exists(f"/proc/{pid}/exe") for pid in children)
    assert not (output / "wav.scp").exists()
    assert len(dump(data, output)) == 12 * 30


def test_an_empty_or_missing_data_directory_is_an_error(prepare, tmp_path):
    data = prepare()
    with pytest.raises(UserError, match="not a data directory"):
        dump(tmp_path / "nowhere", tmp_path / "dump")
    with pytest.raises(UserError, match="has no segments"):
        dump(data / "dev.en-de_talks", tmp_path / "dump")
    (data / "train.en-de" / "utt2spk").write_text("", encoding="utf-8")
    with pytest.raises(UserError, match="is empty"):
        dump(data / "train.en-de", tmp_path / "dump")


def test_unreadable_audio_is_named(release, prepare, tmp_path):
    data = prepare() / "train.en-de"
    (release.data("train") / "wav" / "ted_1.wav").write_bytes(b"RIFF")
    with pytest.raises(UserError, match=r"ted_1\.wav: cannot read audio"):
        dump(data, tmp_path / "dump")


def test_audio_that_got_shorter_after_stage_1_is_named_not_cut(release, prepare, tmp_path):
    data = prepare() / "train.en-de"
    release.write_wav("train", "ted_1.wav", 3.0)
    with pytest.raises(UserError, match=r"ted_00001-00002: 2.0-3.5 s is not in .*ted_1\.wav of 3.000 s"):
        dump(data, tmp_path / "dump")
    assert not (tmp_path / "dump" / "wav.scp").exists()
    assert not list((tmp_path / "dump" / "audio").glob("*"))


def test_audio_that_breaks_off_inside_is_named(release, prepare, tmp_path):
    path = release.data("train") / "wav" / "ted_1.wav"
    soundfile.write(path, np.random.default_rng(0).uniform(-0.5, 0.5, 64000), 16000, format="FLAC")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(UserError, match=r"ted_1\.wav"):
        dump(prepare() / "train.en-de", tmp_path / "dump")


def test_values_that_are_no_numbers_are_named(release, prepare, tmp_path):
    samples = np.zeros(64000, dtype="float32")
    samples[40000] = np.nan
    soundfile.write(release.data("train") / "wav" / "ted_1.wav", samples, 16000, subtype="FLOAT")
    with pytest.raises(UserError, match=r"ted_00001-00002: .*ted_1\.wav .*holds no numbers"):
        dump(prepare() / "train.en-de", tmp_path / "dump")


def test_loud_audio_is_clipped_not_wrapped(release, prepare, tmp_path):
    samples = np.where(np.arange(64000) // 20 % 2, 1.0, -1.0)
    soundfile.write(release.data("train") / "wav" / "ted_1.wav", samples, 16000, subtype="FLOAT")
    data = prepare()
    options = ["--data", str(data / "train.en-de"), "--output_dir", str(data / "train_sp.en-de")]
    perturb_speed.main([*options, "--factors", "0.9"])
    audio = dump(data / "train_sp.en-de", tmp_path / "dump")["sp0.9-ted_00001-00001"]
    assert np.abs(np.diff(audio)).mean() < 0.2  # a wrapped peak would jump from +1 to -1


def test_the_validator_looks_at_the_audio(release, prepare):
    dev = prepare() / "dev.en-de"
    validate_data_dir.main([str(dev)])
    release.write_wav("dev", "ted_1.wav", 3.0)
    with pytest.raises(UserError, match=r"segments: ted_00001-00002 ends at 3.5 s, .*ted_1.wav at 3.000 s"):
        validate_data_dir.main([str(dev)])
    (release.data("dev") / "wav" / "ted_1.wav").unlink()
    with pytest.raises(UserError, match=r"wav\.scp: ted_00001: .*ted_1\.wav is missing or unreadable"):
        validate_data_dir.main([str(dev)])


@pytest.mark.parametrize(
    ("name", "table", "message"),
    [
        ("text.tc.de", {"ted_00001-00001": "eins"}, r"text\.tc\.de: ted_00001-00002 is not in both"),
        (
            "utt2spk",
            {"ted_00001-00001": "someone", "ted_00001-00002": "someone"},
            "does not begin with the id of its sp",
        ),
        ("utt2spk", {"a\u00a0b": "a"}, "ids may not hold white space"),
        ("utt2spk", {"a-b_1": "a-b", "a_1": "a"}, "utterances do not sort as their speakers, a and a-b"),
        ("spk2utt", {"ted_00001": "ted_00001-00001"}, "not the inverse of utt2spk"),
        ("segments", {"ted_00001-00001": "ted_9 0 1", "ted_00001-00002": "ted_00001 0 1"}, "recording ted_9 not in"),
        (
            "segments",
            {"ted_00001-00001": "ted_00001 1 1"},
            "segments:1: segment ted_00001-00001 has no positive length",
        ),
    ],
)
def test_the_validator_names_what_differs(prepare, name, table, message):
    train = prepare() / "train.en-de"
    write_table(train / name, table)
    with pytest.raises(UserError, match=message):
        validate(train)


def test_the_validator_wants_c_order(prepare):
    text = prepare() / "train.en-de" / "text.tc.de"
    text.write_bytes(b"".join(reversed(text.read_bytes().splitlines(keepends=True))))
    with pytest.raises(UserError, match=r"text\.tc\.de: not sorted in C order"):
        validate(text.parent)
