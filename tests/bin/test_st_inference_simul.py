"""The decoding command as a user calls it: files, resume, bad input."""

import json
import os

import numpy as np
import pytest
import soundfile
import yaml

from espnet_ext.bin import check_chunk_invariance, st_inference_simul
from espnet_ext.errors import UserError
from espnet_ext.lock import locked
from espnet_ext.log.instances import read_instances


@pytest.fixture
def data(tmp_path, speech):
    """Two recordings, four segments of the first, references."""
    soundfile.write(tmp_path / "talk.wav", speech(6), 16000, subtype="PCM_16")
    (tmp_path / "wav.scp").write_text(f"talk {tmp_path}/talk.wav\n")
    (tmp_path / "segments").write_text("u1 talk 0 2\nu2 talk 2 3.5\nu3 talk 3.5 3.51\nu4 talk 4 6\n")
    (tmp_path / "text").write_text("u4 vier\nu3 drei\nu2 zwei\nu1 eins\n")
    return tmp_path


@pytest.fixture
def decode(data, tiny_paths):
    def call(*options, output="out"):
        model = [f"--{key}={value}" for key, value in tiny_paths.items()]
        source = [f"--data_path_and_name_and_type={data}/wav.scp,speech,sound", f"--segments={data}/segments"]
        st_inference_simul.main([*model, *source, f"--output_dir={data}/{output}", f"--ref={data}/text", *options])
        return data / output

    return call


HOLD = ("--policy", "hold_n", "--hold_n", "1")


def without_times(out):
    keep = ("index", "utt_id", "prediction", "delays", "reference")
    return [{key: json.loads(line)[key] for key in keep} for line in open(out / "instances.log")]


def test_every_key_is_written_in_input_order_the_empty_one_too(decode):
    out = decode(*HOLD)
    instances = read_instances(out / "instances.log", "de")
    assert [instance.utt_id for instance in instances] == ["u1", "u2", "u3", "u4"]
    assert [instance.reference for instance in instances] == ["eins", "zwei", "drei", "vier"]
    assert instances[2].prediction == "" and instances[1].prediction != ""
    lines = (out / "text").read_text().splitlines()
    assert lines[2] == "u3" and lines[0] == f"u1 {instances[0].prediction}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--policy", "align_att", "--align_att_layer", "9"), "align_att_layer: 9 is above"),
        (("--lm_weight", "0.3"), "lm_weight: there is no language model"),
    ],
)
def test_an_option_that_the_model_cannot_take_leaves_nothing_behind(decode, data, options, message):
    with pytest.raises(UserError, match=message):
        decode(*options)
    assert not (data / "out").exists()


def test_stats_are_the_sums_of_the_lines(decode):
    out = decode(*HOLD)
    stats = json.loads((out / "stats.json").read_text())
    instances = read_instances(out / "instances.log")
    assert stats["decoder_forwards"] == sum(step.forwards for i in instances for step in i.steps) > 0
    assert stats["audio_s"] == pytest.approx(5.51)
    assert stats["block_size"] == 8 and stats["search"] == "ibwbs" and stats["policy_args"]["hold_n"] == 1
    assert stats["system"] == "ibwbs_hold_n1" and stats["variant"] == {}
    assert stats["chunk_ms"] == 160 and stats["policy_args"]["repetition"] is True
    assert stats["versions"]["espnet"]


def test_a_talk_is_translated_while_it_is_read(decode, data, speech):
    """A file of half a minute: what is put out does not wait for its end, and the session forgets."""
    soundfile.write(data / "talk.wav", np.concatenate([speech(3.0, seed) for seed in range(9)]), 16000)
    (data / "segments").write_text("u1 talk 0 27\n")
    options = "--long_form true --policy align_att --align_att_layer 2 --align_att_f 2 --max_audio_s 5 --n_words 3"
    (instance,) = read_instances(decode(*options.split()) / "instances.log")
    assert instance.source_length == 27000 and len(instance.steps) == 28
    assert instance.delays[0] < instance.delays[-1]
    work = [step.encoded_frames for step in instance.steps]
    assert max(work) < 5 * 25 * 3


def test_an_interrupted_run_goes_on_to_the_same_end(decode):
    whole = without_times(decode(*HOLD))
    out = decode(*HOLD, output="again")
    lines = (out / "instances.log").read_bytes().splitlines(keepends=True)
    (out / "instances.log").write_bytes(lines[0] + lines[1][:40])
    (out / "stats.json").unlink()
    (out / "text").unlink()
    assert without_times(decode(*HOLD, output="again")) == whole
    assert len((out / "text").read_text().splitlines()) == 4
    assert json.loads((out / "stats.json").read_text())["audio_s"] == pytest.approx(5.51)


def test_another_config_in_the_same_directory_is_refused_by_key(decode):
    out = decode(*HOLD)
    before = (out / "instances.log").read_bytes()
    with pytest.raises(UserError, match="hold_n is 1 there and 2 now"):
        decode("--policy", "hold_n", "--hold_n", "2")
    assert (out / "instances.log").read_bytes() == before


def test_a_second_run_into_a_directory_is_refused_while_the_first_is_at_work(decode, data):
    with (
        locked(data / "out"),
        pytest.raises(UserError, match=f"out: another run is at work on it .process {os.getpid()}"),
    ):
        decode(*HOLD)


def test_another_input_list_in_the_same_directory_is_refused(decode, data):
    decode(*HOLD)
    (data / "segments").write_text("u1 talk 0 2\n")
    with pytest.raises(UserError, match="input is"):
        decode(*HOLD)


def test_the_command_line_overrides_the_yaml_file(decode, data):
    (data / "conf.yaml").write_text("search: ibwbs\npolicy: hold_n\nhold_n: 3\n")
    out = decode("--config", str(data / "conf.yaml"), "--hold_n", "1")
    config = yaml.safe_load((out / "config.yaml").read_text())
    assert (config["policy"], config["hold_n"]) == ("hold_n", 1)


def test_key_file_selects_in_input_order(decode, data):
    (data / "keys").write_text("u4\nu1\n")
    assert [line["utt_id"] for line in without_times(decode("--key_file", str(data / "keys")))] == ["u1", "u4"]


def test_re_translation_logs_its_revisions(decode):
    instance = read_instances(decode("--search", "bwbs") / "instances.log")[0]
    assert instance.revisions and set(instance.delays) == {instance.source_length}


def write_segment(data, line):
    (data / "segments").write_text(line + "\n")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda d: (d / "wav.scp").unlink(), "wav.scp: no such file"),
        (lambda d: (d / "wav.scp").write_text(f"talk {d}/absent.wav\n"), "u1: cannot read audio .*absent.wav"),
        (lambda d: (d / "talk.wav").write_bytes(b"RIFFnonsense"), "u1: cannot read audio .*talk.wav"),
        (
            lambda d: soundfile.write(d / "talk.wav", np.zeros(8000), 8000),
            "u1: .*at 8000 Hz; mono at 16000 Hz is needed",
        ),
        (lambda d: soundfile.write(d / "talk.wav", np.zeros((99, 2)), 16000), r"u1: .*has 2 channel\(s\)"),
        (lambda d: write_segment(d, "u1 talk 0 9"), "u1: segment 0.0-9.0 s does not lie in .*talk.wav"),
        (lambda d: write_segment(d, "u1 talk 3 2"), "u1: segment 3.0-2.0 s"),
        (lambda d: write_segment(d, "u1 talk 0"), "segments: key 'u1' needs 'RECORDING START END'"),
        (lambda d: write_segment(d, "u1 tlak 0 1"), "segments: key 'u1' names recording 'tlak'"),
        (lambda d: write_segment(d, "u1 talk 0 1\nu1 talk 1 2"), "segments:2: key 'u1' occurs twice"),
        (lambda d: (d / "segments").write_text(""), "segments: no utterance in it"),
        (lambda d: (d / "text").write_text("u1 eins\n"), "text: no reference for 'u2' \\(3 of 4 are missing\\)"),
        (lambda d: (d / "wav.scp").write_text("talk cat talk.wav |\n"), "wav.scp: key 'talk' is a pipe"),
    ],
)
def test_bad_input_is_named(decode, data, spoil, message):
    spoil(data)
    with pytest.raises(UserError, match=message):
        decode()
    assert not (data / "out" / "stats.json").exists()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--st_model_file=/nowhere.pth"], "/nowhere.pth: no such file"),
        (["--data_path_and_name_and_type=wav.scp"], "data_path_and_name_and_type: expected WAV_SCP,speech,sound"),
        (["--policy=hold_n", "--hold_n=-1"], "hold_n: must be at least 0"),
        (["--ngpu=1"], "ngpu: no GPU is available"),
    ],
)
def test_bad_options_are_named(decode, option, message):
    with pytest.raises(UserError, match=message):
        decode(*option)


def test_an_unknown_key_of_the_yaml_file_is_named(decode, data):
    (data / "conf.yaml").write_text("polcy: all\n")
    with pytest.raises(UserError, match="conf.yaml: polcy: unknown option, did you mean policy?"):
        decode("--config", str(data / "conf.yaml"))


def test_weights_of_another_model_are_refused(decode, tmp_path_factory):
    from tiny_model import write_model

    other = write_model(tmp_path_factory.mktemp("other"), encoder_conf=dict(linear_units=8))
    with pytest.raises(UserError, match="does not fit .*: [0-9]+ parameters have another shape, such as encoder"):
        decode(f"--st_model_file={other['st_model_file']}")


def test_an_unknown_option_is_one_line_and_exit_code_2(capsys):
    with pytest.raises(SystemExit) as stopped:
        st_inference_simul.main(["--nonsense"])
    assert stopped.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_chunk_invariance_is_checked_over_a_list(data, tiny_paths, capsys):
    model = [f"--{key}={value}" for key, value in tiny_paths.items()]
    source = [f"--wav_scp={data}/wav.scp", f"--segments={data}/segments"]
    assert check_chunk_invariance.main([*model, *source, "--cuts_ms", "16,320,all", *HOLD]) == 0
    assert json.loads(capsys.readouterr().out) == {"utterances": 4, "violations": 0}


def test_a_cut_that_is_no_number_is_named(data, tiny_paths):
    model = [f"--{key}={value}" for key, value in tiny_paths.items()]
    with pytest.raises(UserError, match="cuts_ms: expected ms or 'all', got 'x'"):
        check_chunk_invariance.main([*model, f"--wav_scp={data}/wav.scp", "--cuts_ms", "x"])


def test_references_are_not_replaced_by_the_translations(decode, data):
    before = (data / "text").read_bytes()
    with pytest.raises(UserError, match=r"output_dir: .*text is an input"):
        decode(*HOLD, output=".")
    assert (data / "text").read_bytes() == before


def test_a_recording_that_is_cut_short_is_an_error(decode, data):
    (data / "talk.wav").write_bytes((data / "talk.wav").read_bytes()[: 2 * 16000 * 5])
    with pytest.raises(UserError, match=r"u4: .*talk\.wav is cut short: \d+ of 32000 samples"):
        decode(*HOLD)
