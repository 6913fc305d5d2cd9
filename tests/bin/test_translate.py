"""`espnet-simul translate` as people use it: what is printed, subtitles, pipes, the microphone, bad input."""

import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from espnet_ext.bin import st_inference_simul, translate
from espnet_ext.errors import UserError
from espnet_ext.log.instances import read_instances
from espnet_ext.session import SimulSession
from espnet_ext.subtitles import CueMaker
from espnet_ext.views import LogLines, PlainLines

ROOT = Path(__file__).parents[2]
HOLD = ("--policy", "hold_n", "--hold_n", "1")


@pytest.fixture(scope="session")
def model(tiny_paths):
    return ["--model", str(Path(tiny_paths["st_train_config"]).parent)]


@pytest.fixture
def audio(tmp_path, speech):
    """The same 6 s as wav, flac, stereo at 32 kHz and raw."""
    samples = speech(6)
    soundfile.write(tmp_path / "talk.wav", samples, 16000, subtype="PCM_16")
    read, _ = soundfile.read(tmp_path / "talk.wav", dtype="int16")
    (tmp_path / "talk.raw").write_bytes(read.astype("<i2").tobytes())
    soundfile.write(tmp_path / "talk.flac", read, 16000)
    soundfile.write(tmp_path / "stereo.wav", np.stack([np.repeat(read, 2)] * 2, axis=1), 32000)
    return tmp_path


@pytest.fixture
def printed(model, capsys):
    """What the command prints on a standard output that is no terminal."""

    def call(*options):
        code = translate.main([*map(str, options), *model])
        assert code == 0
        return capsys.readouterr().out

    return call


@pytest.fixture
def piped(model):
    """The command as a process of its own, its standard input a pipe that stays open."""
    started = []

    def start(*options):
        process = subprocess.Popen(
            [sys.executable, "-m", "espnet_ext.bin.espnet_simul", "translate", *options, *model, *HOLD],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    "system",
    [HOLD, ("--policy", "local_agreement"), ("--search", "offline"), ("--search", "ibwbs", "--chunk_ms", "50")],
)
def test_the_text_is_that_of_the_decoding_command(audio, printed, model, system):
    (audio / "wav.scp").write_text(f"talk {audio}/talk.wav\n")
    data = ["--data_path_and_name_and_type", f"{audio}/wav.scp,speech,sound", "--output_dir", f"{audio}/out"]
    st_inference_simul.main([*model, *data, *system])
    (instance,) = read_instances(audio / "out" / "instances.log", "de")
    assert " ".join(printed(audio / "talk.wav", *system).split()) == instance.prediction != ""


def test_without_a_search_or_a_policy_it_holds_back_the_last_words(audio, printed):
    assert printed(audio / "talk.wav") == printed(audio / "talk.wav", "--policy", "hold_n")


def test_a_pause_ends_a_sentence_if_it_shall(tmp_path, speech, printed, tiny):
    samples = np.concatenate([speech(2), np.zeros(12800, np.float32), speech(2, 1)])
    soundfile.write(tmp_path / "talk.wav", samples, 16000, subtype="FLOAT")
    session = SimulSession(tiny, policy="hold_n", hold_n=1)
    session.push(samples[:40000])
    session.flush()
    session.push(samples[40000:])
    session.finish()
    told = [" ".join(printed(tmp_path / "talk.wav", "--pauses", value, *HOLD).split()) for value in ("true", "false")]
    assert told[0] == session.text != told[1] == " ".join(printed(tmp_path / "talk.wav", *HOLD).split())


def test_json_lines_add_up_to_the_text(audio, printed):
    text = " ".join(printed(audio / "talk.wav", *HOLD).split())
    lines = [json.loads(line) for line in printed(audio / "talk.wav", "--json", *HOLD).splitlines()]
    assert " ".join(line["text"] for line in lines if line["text"]) == text
    assert [line["final"] for line in lines] == [False] * (len(lines) - 1) + [True]
    assert lines[-1]["delay_ms"] == 6000 and all(line["elapsed_ms"] > line["delay_ms"] for line in lines)
    assert any(line["unstable"] for line in lines) and lines[0]["source"] == str(audio / "talk.wav")


def test_sentences_have_a_line_each_and_files_do_not_mix(audio, printed):
    once = printed(audio / "talk.wav", *HOLD)
    assert once.endswith("\n") and printed(audio / "talk.wav", audio / "talk.flac", *HOLD) == 2 * once


def test_any_rate_and_number_of_channels_is_taken(audio, printed):
    assert len(printed(audio / "stereo.wav", *HOLD).split()) > 3


def cues(srt):
    entry = r"(\d+)\n([\d:,]+) --> ([\d:,]+)\n((?:.+\n){1,2})\n"
    found = re.findall(entry, srt)
    assert "".join(f"{n}\n{start} --> {end}\n{lines}\n" for n, start, end, lines in found) == srt

    def seconds(text):
        hours, minutes, rest = text.replace(",", ".").split(":")
        return 3600 * int(hours) + 60 * int(minutes) + float(rest)

    assert [int(n) for n, *_ in found] == list(range(1, len(found) + 1))
    return [(seconds(start), seconds(end), lines.splitlines()) for _, start, end, lines in found]


def test_subtitles_hold_the_text_fit_and_never_overlap(audio, printed):
    text = printed(audio / "talk.wav", "--srt", audio / "talk.srt", *HOLD)
    made = cues((audio / "talk.srt").read_text())
    assert [word for _, _, lines in made for line in lines for word in line.split()] == text.split()
    assert cues(printed(audio / "talk.wav", "--srt", "-", *HOLD)) == made
    assert all(end - start >= 0.999 and max(map(len, lines)) <= 42 for start, end, lines in made)
    assert all(before[1] <= after[0] for before, after in pairwise(made))


def test_cues_end_with_sentences_full_lines_and_pauses():
    words = [*["einmal"] * 14, "Ende.", "Neu", "später", "x" * 100]
    delays = [*range(1000, 16000, 1000), 16000, 40000, 40000]
    maker = CueMaker(" ")
    made = [*maker.add(words, delays), *maker.finish()]
    assert [cue.start for cue in made] == [1.0, 9.0, 16.0, 40.0, 41.0, 45.2]
    assert made[1].lines == ("einmal einmal einmal einmal einmal einmal", "Ende.")
    assert made[2].lines == ("Neu",) and made[2].end == 17.0
    assert [len(line) for cue in made[4:] for line in cue.lines] == [42, 42, 16]


def test_cues_of_characters_count_wide_ones_twice():
    maker = CueMaker("")
    made = [*maker.add("字" * 30, [1000.0] * 30), *maker.finish()]
    assert [len(line) for cue in made for line in cue.lines] == [21, 9]


@pytest.fixture
def standard_input():
    """Makes a pipe into which a thread writes a file's content the standard input of this process."""
    before = os.dup(0)

    def feed(path):
        end, beginning = os.pipe()
        os.dup2(end, 0)
        os.close(end)
        threading.Thread(target=lambda: os.fdopen(beginning, "wb").write(path.read_bytes()), daemon=True).start()

    yield feed
    os.dup2(before, 0)
    os.close(before)


@pytest.mark.parametrize("kind", ["wav", "flac", "raw"])
def test_standard_input_is_read(audio, printed, standard_input, monkeypatch, kind):
    text = printed(audio / "talk.wav", *HOLD)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: False))
    standard_input(audio / f"talk.{kind}")
    assert printed("-", *HOLD, *(["--raw"] if kind == "raw" else [])) == text


def test_standard_input_of_a_terminal_is_refused(monkeypatch, model):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    with pytest.raises(UserError, match="standard input is a terminal"):
        translate.main(["-", *model])


def test_words_come_while_audio_does_and_ctrl_c_translates_what_was_heard(audio, piped):
    process = piped("-", "--json")
    process.stdin.write((audio / "talk.wav").read_bytes()[: 4 * 32000])
    process.stdin.flush()
    lines = []
    while not lines or json.loads(lines[-1])["delay_ms"] < 3700:
        lines.append(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=60)
    last = json.loads(rest.splitlines()[-1])
    assert last["final"] and last["text"] and process.returncode == 130
    assert all(line.startswith(b"WARNING: -: ") for line in errors.splitlines()), errors


def test_nobody_reads_any_more(audio, piped):
    process = piped(str(audio / "talk.wav"), "--json")
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b"" and process.wait() == 141


def test_realtime_takes_the_time_of_the_audio(audio, printed, speech):
    soundfile.write(audio / "short.wav", speech(2), 16000)
    begun = time.monotonic()
    lines = printed(audio / "short.wav", "--realtime", "--json", *HOLD)
    assert time.monotonic() - begun >= 2 and json.loads(lines.splitlines()[-1])["final"]


class FakeStream:
    """Gives the blocks of a recording to the callback."""

    samples = None

    def __init__(self, samplerate, channels, dtype, blocksize, callback):
        assert (samplerate, channels, dtype) == (16000, 1, "float32")
        self.size, self.callback = blocksize, callback

    def __enter__(self):
        for begin in range(0, len(self.samples), self.size):
            self.callback(self.samples[begin : begin + self.size, None], self.size, None, None)

    def __exit__(self, *_):
        pass


def ctrl_c_after(seconds, push):
    """`SimulSession.push` which, so many seconds of audio later, has ctrl-C pressed while more is waited for."""

    def pushed(session, samples):
        update = push(session, samples)
        if session.source_ms >= 1000 * seconds:
            signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
            signal.setitimer(signal.ITIMER_REAL, 0.3)
        return update

    return pushed


def test_the_microphone_is_heard_until_ctrl_c(monkeypatch, model, capsys, speech):
    monkeypatch.setattr(FakeStream, "samples", speech(6))
    fake = SimpleNamespace(InputStream=FakeStream, PortAudioError=OSError)
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    monkeypatch.setattr(SimulSession, "push", ctrl_c_after(6, SimulSession.push))
    assert translate.main(["mic", *model, *HOLD, "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[-1]["final"] and lines[-1]["delay_ms"] == 6000


def test_a_missing_recorder_is_named(monkeypatch, model):
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    with pytest.raises(UserError, match="pip install sounddevice"):
        translate.main(["mic", *model])


def test_long_audio_without_long_form_is_warned_of_once(printed, tmp_path, caplog):
    soundfile.write(tmp_path / "long.wav", np.zeros(31 * 16000, np.float32), 16000)
    with caplog.at_level(logging.WARNING):
        printed(tmp_path / "long.wav")
        said = [record.message for record in caplog.records if "--long_form true" in record.message]
        assert len(said) == 1 and str(tmp_path / "long.wav") in said[0]
        caplog.clear()
        printed(tmp_path / "long.wav", "--long_form", "true", "--policy", "align_att", "--align_att_layer", "1")
        assert not any("--long_form true" in record.message for record in caplog.records)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["none.wav"], "none.wav: no such file"),
        (["talk.wav", "text.wav"], "text.wav: not audio"),
        (["talk.wav", "empty.wav"], "empty.wav is empty"),
        (["."], ".: is a directory"),
        (["/dev/null"], "/dev/null: neither a file nor a pipe"),
        (["-", "-"], "-: standard input is there once"),
        (["talk.wav", "--srt", "."], "srt: . is a directory"),
        (["talk.wav", "talk.flac", "--srt", "a.srt"], "srt: one input"),
        (["talk.wav", "--srt", "a.srt", "--search", "offline"], "srt: offline releases everything at the end"),
        (["talk.wav", "--srt", "-", "--json"], "srt: standard output has the JSON lines"),
        (["talk.wav", "--hold_n", "-1"], "hold_n: must be at least 0"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(audio, model, monkeypatch, options, message):
    monkeypatch.chdir(audio)
    monkeypatch.setattr(translate, "load_model_from_args", lambda args: pytest.fail("loaded before it was refused"))
    (audio / "text.wav").write_text("no audio")
    (audio / "empty.wav").touch()
    with pytest.raises(UserError, match=re.escape(message)):
        translate.main([*options, *model])
    assert not (audio / "a.srt").exists()


def test_samples_that_are_no_numbers_are_named(audio, model):
    soundfile.write(audio / "nan.wav", np.full(16000, np.nan, np.float32), 16000, subtype="FLOAT")
    with pytest.raises(UserError, match=r"nan\.wav: samples that are not finite"):
        translate.main([f"{audio}/nan.wav", *model])


@pytest.mark.parametrize("target", ["talk.wav", "link.wav", "hold.yaml", "model.pth"])
def test_subtitles_replace_no_input(audio, model, monkeypatch, target):
    monkeypatch.chdir(audio)
    (audio / "link.wav").symlink_to("talk.wav")
    (audio / "hold.yaml").write_text("hold_n: 1\n")
    path = Path(model[1], target) if target == "model.pth" else audio / target
    before = path.read_bytes()
    with pytest.raises(UserError, match=f"srt: .*{target} is an input"):
        translate.main(["talk.wav", "--config", "hold.yaml", "--srt", str(path), *model])
    assert path.read_bytes() == before


def piped_file(way, path, standard_input, monkeypatch):
    """How the command is told to read a file, or its content from standard input."""
    if way == "file":
        return str(path)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: False))
    standard_input(path)
    return "-" if way == "-" else "/dev/fd/0"


WAYS = pytest.mark.parametrize("way", ["file", "-", "pipe"])


@WAYS
@pytest.mark.parametrize("kind", ["wav", "flac"])
def test_audio_that_is_cut_short_is_an_error(audio, model, standard_input, monkeypatch, way, kind):
    content = (audio / f"talk.{kind}").read_bytes()
    (audio / "cut").write_bytes(content[: len(content) // 2])
    name = {"file": "cut", "-": "standard input", "pipe": "/dev/fd/0"}[way]
    with pytest.raises(UserError, match=rf"{name} is cut short: \d+ of 96000 samples|cannot read audio"):
        translate.main([piped_file(way, audio / "cut", standard_input, monkeypatch), *model, *HOLD])


@WAYS
@pytest.mark.parametrize("size", [0, 0x7FFFF000, 0xFFFFFFFF])
def test_wav_whose_size_was_left_open_is_read_to_its_end(audio, printed, standard_input, monkeypatch, way, size):
    whole = (audio / "talk.wav").read_bytes()
    unknown = size.to_bytes(4, "little")
    (audio / "open.wav").write_bytes(whole[:4] + unknown + whole[8:40] + unknown + whole[44:])
    text = printed(audio / "talk.wav", *HOLD)
    assert printed(piped_file(way, audio / "open.wav", standard_input, monkeypatch), *HOLD) == text


@pytest.mark.parametrize(("content", "message"), [("", "standard input is empty"), ("no audio", "standard input: not")])
def test_standard_input_without_audio_is_told(tmp_path, model, standard_input, monkeypatch, content, message):
    (tmp_path / "text").write_text(content)
    with pytest.raises(UserError, match=message):
        translate.main([piped_file("-", tmp_path / "text", standard_input, monkeypatch), *model])


@pytest.mark.parametrize(
    ("one_place", "shown"), [(True, "Sehen\nWARNING: long\nSie das.\n"), (False, "Sehen Sie das.\n")]
)
def test_log_lines_break_no_text_where_both_go_to_one_place(tmp_path, monkeypatch, one_place, shown):
    session = SimpleNamespace(config=SimpleNamespace(tgt_lang="de"))
    with open(tmp_path / "out", "w") as out, open(tmp_path / "err", "w") as err:
        monkeypatch.setattr(sys, "stderr", out if one_place else err)
        log = LogLines()
        log.text = PlainLines(out)
        log.text.update(session, SimpleNamespace(units=["Sehen"]))
        log.handle(logging.makeLogRecord({"levelname": "WARNING", "msg": "long"}))
        log.text.update(session, SimpleNamespace(units=["Sie", "das."]))
    assert (tmp_path / "out").read_text() == shown


def test_the_decoder_of_mp3_says_nothing_amid_the_text(tmp_path, model, speech, capfd):
    soundfile.write(tmp_path / "talk.mp3", speech(6), 16000)
    content = bytearray((tmp_path / "talk.mp3").read_bytes())
    content[3060] ^= 0xFF  # the header of a frame
    (tmp_path / "talk.mp3").write_bytes(content)
    with pytest.raises(UserError, match="is cut short"):
        translate.main([str(tmp_path / "talk.mp3"), *model, *HOLD])
    assert not re.search("mpg123|MPEG", capfd.readouterr().err)
