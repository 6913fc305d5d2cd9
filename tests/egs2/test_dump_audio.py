import dump_audio
import numpy as np
import perturb_speed
import pytest
import soundfile
from kaldi_dir import validate

from espnet_ext.errors import UserError
from espnet_ext.files import read_table


def dump(data, output, *options):
    dump_audio.main(["--data", str(data), "--output_dir", str(output), *options])
    return {utterance: soundfile.read(path) for utterance, path in read_table(output / "wav.scp").items()}


@pytest.mark.parametrize("audio_format", ["flac", "wav"])
def test_each_file_holds_exactly_the_samples_of_its_segment(release, prepare, tmp_path, audio_format):
    audio = dump(prepare() / "train.en-de", tmp_path / "dump", "--audio_format", audio_format)
    talk, _ = soundfile.read(release.data("train") / "wav" / "ted_1.wav")
    samples, rate = audio["ted_00001_00001"]
    assert rate == 16000
    np.testing.assert_array_equal(samples, talk[4000:28000])
    assert read_table(tmp_path / "dump" / "utt2num_samples")["ted_00001_00001"] == "24000"
    assert validate(tmp_path / "dump") == 2


def test_any_rate_and_channels_become_16_khz_mono(release, prepare, tmp_path):
    release.write_wav("train", "ted_1.wav", 4.0, rate=44100, channels=2)
    samples, rate = dump(prepare() / "train.en-de", tmp_path / "dump")["ted_00001_00002"]
    assert rate == 16000 and samples.shape == (24000,)


def test_speed_perturbation_shortens_by_its_factor(prepare, tmp_path):
    data = prepare()
    options = ["--data", str(data / "train.en-de"), "--output_dir", str(data / "train_sp.en-de")]
    perturb_speed.main([*options, "--factors", "0.8", "1.0", "1.25"])
    audio = dump(data / "train_sp.en-de", tmp_path / "dump")
    lengths = {utterance: len(samples) for utterance, (samples, _) in audio.items()}
    assert lengths["ted_00001_00001"] == 24000
    assert lengths["sp0.8-ted_00001_00001"] == 30000
    assert lengths["sp1.25-ted_00001_00001"] == 19200
    assert len(lengths) == 6


def test_more_jobs_than_recordings_are_capped_with_one_line(prepare, tmp_path, capsys):
    data = prepare() / "train.en-de"
    capsys.readouterr()
    audio = dump(data, tmp_path / "dump", "--nj", "32")
    assert len(audio) == 2
    capped = [line for line in capsys.readouterr().out.split("\n") if "1 jobs instead of 32" in line]
    assert len(capped) == 1


def test_a_killed_dump_goes_on_and_does_not_believe_half_files(prepare, tmp_path, capsys):
    data, output = prepare() / "train.en-de", tmp_path / "dump"
    whole = dump(data, output)
    (output / ".done").unlink()
    for name in ("wav.scp", "utt2num_samples"):
        (output / name).unlink()
    first = output / "audio" / "ted_00001" / "ted_00001_00001.flac"
    half = first.with_name(f".{first.name}.1.tmp")
    half.write_bytes(first.read_bytes()[:100])
    first.unlink()
    capsys.readouterr()
    again = dump(data, output)
    assert "1 of 2 utterances were there already" in capsys.readouterr().out
    for utterance, (samples, _) in whole.items():
        np.testing.assert_array_equal(again[utterance][0], samples)


def test_an_empty_or_missing_data_directory_is_an_error(prepare, tmp_path):
    data = prepare() / "train.en-de"
    (data / "utt2spk").write_text("", encoding="utf-8")
    with pytest.raises(UserError, match="is empty"):
        dump(data, tmp_path / "dump")
    with pytest.raises(UserError, match="not a data directory"):
        dump(tmp_path / "nowhere", tmp_path / "dump")


def test_unreadable_audio_is_named(release, prepare, tmp_path):
    data = prepare() / "train.en-de"
    (release.data("train") / "wav" / "ted_1.wav").write_bytes(b"RIFF")
    with pytest.raises(UserError, match=r"ted_1\.wav: cannot read audio"):
        dump(data, tmp_path / "dump")
