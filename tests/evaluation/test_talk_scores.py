"""Scores of whole talks: by hand, and as OmniSTEval itself computes them."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from espnet_ext.bin import convert_log, score_simul
from espnet_ext.errors import UserError
from espnet_ext.evaluation.long_form import join_talks, score_talks
from espnet_ext.evaluation.segmentation import Segment, assign, read_audio_yaml, read_segments
from espnet_ext.log.clocks import Step
from espnet_ext.log.instances import Instance

PEERS = Path(__file__).parents[2] / ".venv.peers"


def talk(name, prediction, delays, length, late=100.0):
    return Instance(
        index=0,
        utt_id=name,
        prediction=prediction,
        delays=delays,
        elapsed=[delay + late for delay in delays],
        source=[f"{name}.wav"],
        source_length=length,
        steps=[Step(time, late, 1) for time in sorted({*delays, length})],
    )


SEGMENTS = [
    Segment("a1", "a", 1000, 3000, "das ist ein Haus."),
    Segment("a2", "a", 4000, 6000, "Wir gehen nach Hause"),
    Segment("a3", "a", 7000, 8000, "Ja"),
]
TALK = talk("a", "das ist Haus. Wir gehen nach Hause", [2000, 2000, 3000, 5000, 5000, 6000, 6000], 9000)


def test_words_go_to_the_segment_whose_text_they_match():
    assert assign(["das", "ist", "Haus.", "Wir", "gehen", "nach", "Hause"], SEGMENTS, "de") == [3, 4, 0]
    assert assign([], SEGMENTS, "de") == [0, 0, 0]
    assert assign(
        list("这是家我们走"), [Segment("1", "a", 0, 1, "这是家"), Segment("2", "a", 1, 2, "我们走")], "zh"
    ) == [3, 3]


def test_stream_laal_by_hand():
    """a1: 1000, 1000, 2000 after its start, R 4, X 2000: (1000 + 1000 - 500 + 2000 - 1000) / 3; a2 alike."""
    scores, rows = score_talks([(TALK, SEGMENTS)], "de")
    first = (1000 + 500 + 1000) / 3
    second = (1000 + 500 + 1000) / 3
    assert [row["StreamLAAL"] for row in rows] == [pytest.approx(first), pytest.approx(second), None]
    assert scores["StreamLAAL"] == pytest.approx((first + second) / 2)
    assert scores["n_total"] == 3 and scores["n_empty"] == 1 and scores["n_skipped"]["StreamLAAL"] == 1
    assert scores["StreamLAAL_CA"] > scores["StreamLAAL"]
    paper, _ = score_talks([(TALK, SEGMENTS)], "de", empty_segments="paper")
    assert paper["StreamLAAL"] == pytest.approx((first + second) / 3)
    assert [row["prediction"] for row in rows] == ["das ist Haus.", "Wir gehen nach Hause", ""]
    assert scores["punctuation"]["."] == 1 and scores["reference_punctuation"]["."] == 1


def test_negative_delays_count_unless_they_are_clipped():
    early = talk("a", TALK.prediction, [500, 500, 500, 5000, 5000, 6000, 6000], 9000)
    plain, _ = score_talks([(early, SEGMENTS)], "de")
    clipped, _ = score_talks([(early, SEGMENTS)], "de", clip_negative=True)
    assert plain["StreamLAAL"] < clipped["StreamLAAL"]


def test_a_bad_segment_and_a_silent_talk_do_not_remove_the_rest():
    bad = [*SEGMENTS, Segment("a4", "a", 8500, 8500, "Gut"), Segment("a5", "a", 8500, 8900, "")]
    silent = talk("b", "", [], 5000)
    scores, _ = score_talks([(TALK, bad), (silent, [Segment("b1", "b", 0, 2000, "Nichts")])], "de")
    alone, _ = score_talks([(TALK, SEGMENTS)], "de")
    for name in ("StreamLAAL", "LongYAAL", "LongLAAL", "LongDAL"):
        assert scores[name] == pytest.approx(alone[name])
    nothing, _ = score_talks([(silent, [Segment("b1", "b", 0, 2000, "Nichts")])], "de")
    assert nothing["StreamLAAL"] is None and nothing["LongYAAL"] is None and nothing["words_at_end"] is None


@pytest.fixture
def files(tmp_path):
    others = [Segment("b1", "b", 500, 2500, "Ein zweiter Vortrag geht"), Segment("b2", "b", 2500, 5000, "und endet")]
    log = [
        TALK,
        talk("b", "Ein zweiter Vortrag geht und endet hier", [1500, 1500, 2500, 2500, 4000, 5000, 5200], 5500),
    ]
    with open(tmp_path / "instances.log", "w", encoding="utf-8") as stream:
        for index, one in enumerate(log):
            stream.write(replace(one, index=index).to_json() + "\n")
    every = [*SEGMENTS, *others]
    (tmp_path / "ref").write_text("".join(f"{s.key} {s.reference}\n" for s in every))
    (tmp_path / "ref.txt").write_text("".join(f"{s.reference}\n" for s in every))
    (tmp_path / "segments").write_text("".join(f"{s.key} {s.talk} {s.start / 1000} {s.end / 1000}\n" for s in every))
    places = [{"wav": f"{s.talk}.wav", "offset": s.start / 1000, "duration": (s.end - s.start) / 1000} for s in every]
    (tmp_path / "audio.yaml").write_text(yaml.safe_dump(places))
    return tmp_path


def run(files, *options):
    score_simul.main(
        [f"--instances={files}/instances.log", "--tgt_lang=de", f"--output_dir={files}/score", "--long_form", *options]
    )
    return json.loads((files / "score" / "scores.json").read_text())


def test_both_kinds_of_segment_lists_give_the_same_scores(files):
    kaldi = run(files, f"--segments={files}/segments", f"--ref={files}/ref")
    must_c = run(files, f"--audio_yaml={files}/audio.yaml", f"--ref={files}/ref.txt")
    assert kaldi == must_c
    assert kaldi["n_total"] == 5 and kaldi["BLEU"] > 50
    assert len((files / "score" / "per_utt.tsv").read_text().splitlines()) == 6


def test_omnisteval_finds_the_same_long_scores(files):
    ours = run(files, f"--audio_yaml={files}/audio.yaml", f"--ref={files}/ref.txt")
    command = [sys.executable, "-m", "omnisteval.cli", "longform", "--word_level", "--hypothesis_file"]
    command += [str(files / "instances.log"), "--speech_segmentation", str(files / "audio.yaml")]
    command += ["--ref_sentences_file", str(files / "ref.txt"), "--output_folder", str(files / "omni")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    lines = (files / "omni" / "scores.tsv").read_text().splitlines()
    theirs = dict(line.split("\t")[:2] for line in lines if "\t" in line)
    for name in ("LongYAAL", "LongLAAL", "LongAL", "LongDAL"):
        assert float(theirs[f"{name} (CU)"]) == pytest.approx(ours[name], abs=0.01), theirs
        assert float(theirs[f"{name} (CA)"]) == pytest.approx(ours[f"{name}_CA"], abs=0.01), theirs


@pytest.mark.slow
def test_simulstream_finds_the_same_stream_laal(files):
    options = [f"--audio_yaml={files}/audio.yaml", f"--ref={files}/ref.txt", "--ca_clock=per_chunk"]
    ours = run(files, *options)
    log = [str(files / "instances.log"), "--to", "simulstream", "--output", str(files / "simulstream.log")]
    convert_log.main([*log, "--tgt_lang", "de"])
    (files / "config.yaml").write_text("detokenizer_type: simuleval\nlatency_unit: word\n")
    command = [sys.executable, "-m", "simulstream.metrics.score_latency", "--scorer", "stream_laal"]
    command += ["--eval-config", str(files / "config.yaml"), "--log-file", str(files / "simulstream.log")]
    command += ["--audio-definition", str(files / "audio.yaml"), "--reference", str(files / "ref.txt")]
    result = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(PEERS)}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, f"{result.stderr}\n(tools/setup_peers.sh installs simulstream)"
    theirs = [float(number) for number in re.findall(r"=([\d.]+)", result.stdout)]
    assert theirs == pytest.approx([ours["StreamLAAL"] / 1000, ours["StreamLAAL_CA"] / 1000], abs=1e-4)


def test_faults_are_named(files):
    with pytest.raises(UserError, match="--segments is for whole talks"):
        run(files, f"--ref={files}/ref", f"--segments={files}/segments", "--long_form=false")
    with pytest.raises(UserError, match="needs --segments or --audio_yaml"):
        run(files, f"--ref={files}/ref")
    (files / "short").write_text("nur eine Zeile\n")
    with pytest.raises(UserError, match="short: has 1 lines for the 5 segments"):
        read_audio_yaml(files / "audio.yaml", files / "short")
    with pytest.raises(UserError, match="no reference for segment 'a1'"):
        read_segments(files / "segments", files / "short")
    with pytest.raises(UserError, match="no line for talk 'c'"):
        join_talks([TALK], [*SEGMENTS, Segment("c1", "c", 0, 1, "x")], "log")
    with pytest.raises(UserError, match="no segments of talk 'b'"):
        join_talks([TALK, talk("b", "", [], 10)], SEGMENTS, "log")
