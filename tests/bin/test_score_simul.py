import json
import subprocess
import sys

import pytest
from omnisteval.io import load_shortform_instances
from omnisteval.scoring import evaluate_instances

from espnet_ext.bin import score_simul, validate_log
from espnet_ext.errors import UserError
from espnet_ext.log.clocks import Step, elapsed_times
from espnet_ext.log.instances import Instance, InstanceWriter, Revision
from espnet_ext.log.units import clean_text, split_units

STATS = {
    "system": "ibwbs_hold_n6",
    "model_dir": "exp/st_block40.en-de",
    "block_size": 40,
    "search": "ibwbs",
    "policy": "hold_n",
    "policy_args": {"hold_n": 6, "reliability": True},
    "variant": {},
    "chunk_ms": 320,
    "beam_size": 6,
    "tgt_lang": "de",
    "test_set": "tst-COMMON.en-de",
    "commit": "abc",
    "versions": {"espnet": "202611"},
    "decoder_forwards": 10,
}


def instance(index, pieces, steps, length, lang="de", **more):
    """`pieces`: the text released at each step."""
    released = [step.audio_ms for step, piece in zip(steps, pieces, strict=True) for _ in split_units(piece, lang)]
    prediction = clean_text(" ".join(pieces), lang)
    return Instance(
        index, f"utt{index}", prediction, released, elapsed_times(released, steps), [f"{index}.wav"], length, steps,
        **more,
    )  # fmt: skip


def write(directory, instances, references, stats=STATS):
    with InstanceWriter(directory / "instances.log") as writer:
        for item in instances:
            writer.write(item)
    (directory / "text").write_text("".join(f"{key} {text}\n" for key, text in references.items()), encoding="utf-8")
    if stats is not None:
        (directory / "stats.json").write_text(json.dumps(stats))


def run(directory, *options, lang="de"):
    arguments = {"--instances": directory / "instances.log", "--ref": directory / "text", "--tgt_lang": lang}
    argv = [str(part) for pair in arguments.items() for part in pair]
    score_simul.main([*argv, "--output_dir", str(directory / "score"), *options])
    return json.loads((directory / "score" / "scores.json").read_text())


def rows(directory):
    header, *lines = (directory / "score" / "per_utt.tsv").read_text(encoding="utf-8").splitlines()
    return [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]


STEPS = [Step(1000, 1500, 1), Step(2000, 200, 1), Step(3000, 100, 1)]


def test_scores_carry_quality_latency_counts_and_what_was_decoded(tmp_path):
    write(tmp_path, [instance(0, ["ein", "Haus", "am See"], STEPS, 3000)], {"utt0": "ein Haus am See"})
    scores = run(tmp_path)
    assert scores["BLEU"] == pytest.approx(100)
    assert scores["LAAL"] == pytest.approx((1000 + 2000 - 750 + 3000 - 1500) / 3)
    assert scores["words_at_end"] == 0.5
    assert scores["CA_clock"] == "queue"
    assert scores["n_total"] == scores["n_scored"]["LAAL"] == 1
    assert scores["n_empty"] == scores["n_skipped"]["LAAL"] == 0
    assert {key: scores[key] for key in score_simul.META} == {key: STATS[key] for key in score_simul.META}
    assert scores["NE"] is None


@pytest.mark.parametrize(
    ("clock", "elapsed"),
    [("queue", [2500, 2700, 3100]), ("simuleval", [2500, 3700, 4800]), ("per_chunk", [2500, 2200, 3100])],
)
def test_the_clock_decides_the_computation_aware_scores_alone(tmp_path, clock, elapsed):
    write(tmp_path, [instance(0, ["a", "b", "c"], STEPS, 3000)], {"utt0": "a b c"})
    scores = run(tmp_path, "--ca_clock", clock)
    assert scores["CA_clock"] == clock
    assert scores["AP"] == pytest.approx(6000 / 9000)
    assert scores["AP_CA"] == pytest.approx(sum(elapsed) / 9000)


def test_hard_cases_are_undefined_never_zero_and_are_counted(tmp_path):
    steps = [Step(500, 10, 1), Step(2000, 10, 1)]
    late = Instance(4, "utt4", "spät", [2500.0], [2600.0], ["4.wav"], 2000, [Step(2500.0, 100.0, 1)])
    instances = [
        instance(0, ["", ""], steps, 2000),  # empty hypothesis
        instance(1, ["a", "b"], steps, 2000),  # empty reference
        Instance(2, "utt2", "a", [0.0], [5.0], ["2.wav"], 0, [Step(0.0, 5.0, 1)]),  # empty source
        instance(3, ["", "a b"], steps, 2000),  # all at the end
        late,
        instance(5, ["a b", "c d e"], steps, 2000),  # more than the reference
    ]
    references = {"utt0": "a", "utt1": "", "utt2": "a", "utt3": "a b", "utt4": "spät", "utt5": "a  b "}
    write(tmp_path, instances, references)
    scores = run(tmp_path)
    assert scores["n_total"] == 6
    assert scores["n_empty"] == 1
    assert scores["n_scored"]["LAAL"] == 4
    assert scores["n_skipped"]["LAAL"] == 2
    assert scores["n_scored"]["AP"] == 3
    assert scores["n_scored"]["YAAL"] == 2
    by_id = {row["utt_id"]: row for row in rows(tmp_path)}
    assert by_id["utt0"]["LAAL"] == by_id["utt2"]["ATD"] == by_id["utt1"]["AL"] == by_id["utt3"]["YAAL"] == "nan"
    assert by_id["utt4"]["LAAL"] == "2500"
    assert by_id["utt5"]["reference_length"] == "2"
    assert by_id["utt3"]["LAAL"] == "2000"


def test_all_empty_has_bleu_but_no_latency(tmp_path):
    write(tmp_path, [instance(0, ["", "", ""], STEPS, 3000)], {"utt0": "ein Haus"})
    scores = run(tmp_path)
    assert scores["BLEU"] == 0
    assert scores["LAAL"] is scores["AP_CA"] is scores["words_at_end"] is None


def test_blanks_in_a_reference_change_nothing(tmp_path):
    results = []
    for number, reference in enumerate(["ein Haus am See", " ein  Haus\u00a0am\tSee  "]):
        directory = tmp_path / str(number)
        directory.mkdir()
        write(directory, [instance(0, ["ein", "Haus", "am See"], STEPS, 3000)], {"utt0": reference})
        results.append(run(directory))
    assert results[0] == results[1]


def test_retranslation_has_quality_and_erasure_but_no_latency(tmp_path):
    revisions = [Revision(1000, "ein Hund"), Revision(2000, "ein Haus am")]
    write(
        tmp_path,
        [instance(0, ["", "", "ein Haus am See"], STEPS, 3000, revisions=revisions)],
        {"utt0": "ein Haus am See"},
        STATS | {"search": "bwbs"},
    )
    scores = run(tmp_path)
    assert scores["BLEU"] == pytest.approx(100)
    assert scores["NE"] == pytest.approx(1 / 4)
    assert scores["LAAL"] is scores["AP"] is scores["ATD_CA"] is None


def test_references_join_by_id_not_by_line(tmp_path):
    instances = [instance(0, ["a", "b", "c"], STEPS, 3000), instance(1, ["x", "y", "z w"], STEPS, 3000)]
    write(tmp_path, instances, {"utt1": "x y z w", "utt0": "a b c"})
    assert run(tmp_path)["BLEU"] == pytest.approx(100)
    assert [row["utt_id"] for row in rows(tmp_path)] == ["utt1", "utt0"]


@pytest.mark.parametrize(
    ("references", "message"),
    [
        ({"utt0": "a", "utt1": "b"}, "text: 1 of its ids are not in .*instances.log: utt1$"),
        ({"x": "a"}, "text: 1 of its ids are not in .*instances.log: x$"),
        ({}, "instances.log: 1 of its ids are not in .*text: utt0$"),
    ],
)
def test_ids_that_do_not_match_are_named_and_nothing_is_written(tmp_path, references, message):
    write(tmp_path, [instance(0, ["a", "b", "c"], STEPS, 3000)], references)
    with pytest.raises(UserError, match=message):
        run(tmp_path)
    assert not (tmp_path / "score").exists()


def test_a_log_without_stats_is_scored_and_another_language_is_refused(tmp_path):
    write(tmp_path, [instance(0, ["a", "b", "c"], STEPS, 3000)], {"utt0": "a b c"}, stats=None)
    assert run(tmp_path)["system"] is None
    (tmp_path / "stats.json").write_text(json.dumps(STATS | {"tgt_lang": "fr"}))
    with pytest.raises(UserError, match="'tgt_lang' is 'fr'"):
        run(tmp_path)


@pytest.mark.parametrize(
    ("lang", "pieces"),
    [
        ("de", ["with" + "out", "5\u00a0% mehr", "Zeile\nzwei"]),
        ("zh", ["我喜欢", "New York\u3000吗", "你\n们"]),
    ],
)
def test_omnisteval_reads_the_log_and_agrees(tmp_path, lang, pieces):
    """Counted alike: its latencies equal ours, for words and for characters."""
    reference = clean_text(" ".join(pieces[:2]), lang)
    write(
        tmp_path,
        [instance(0, pieces, STEPS, 3000, lang, reference=reference)],
        {"utt0": reference},
        STATS | {"tgt_lang": lang},
    )
    ours = run(tmp_path, lang=lang)
    (loaded,) = load_shortform_instances(str(tmp_path / "instances.log"), None, "delays", "elapsed", lang == "zh")
    assert Instance.from_json((tmp_path / "instances.log").read_text(encoding="utf-8"), lang)
    units = list(loaded.prediction) if lang == "zh" else loaded.prediction.split()
    assert len(units) == len(loaded.emission_cu) == len(loaded.emission_ca)
    theirs, _, _ = evaluate_instances([loaded], compute_quality=False, is_longform=False)
    for metric in ("AL", "LAAL", "AP", "DAL", "YAAL"):
        assert ours[metric] == pytest.approx(theirs[metric.lower()])
        aware = theirs[f"ca_{metric.lower()}"]
        assert ours[f"{metric}_CA"] == (pytest.approx(aware) if aware == aware else None)


def test_validate_log_accepts_a_good_log_and_names_the_fault_of_a_bad_one(tmp_path, capsys):
    write(tmp_path, [instance(0, ["a", "b", "c d"], STEPS, 3000)], {})
    path = tmp_path / "instances.log"
    validate_log.main([str(path), "--tgt_lang", "de"])
    validate_log.main([str(path), "--format", "simuleval"])
    assert "1 utterances, 4 units, valid" in capsys.readouterr().out
    path.write_text(path.read_text().replace('"prediction_length": 4', '"prediction_length": 5'))
    with pytest.raises(UserError, match="instances.log:1: key 'prediction_length'"):
        validate_log.main([str(path)])


def test_the_command_exits_2_with_one_line(tmp_path):
    command = [sys.executable, "-m", "espnet_ext.bin.score_simul", "--instances", "none", "--ref", "none"]
    result = subprocess.run(
        [*command, "--tgt_lang", "de", "--output_dir", str(tmp_path)], capture_output=True, text=True
    )
    assert result.returncode == 2
    assert result.stderr == "error: none: no such file\n"
