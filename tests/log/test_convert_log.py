"""Logs between tools: nothing is lost that both formats hold."""

import json
from dataclasses import replace

import pytest

from espnet_ext.bin import convert_log, score_simul, validate_log
from espnet_ext.bin.validate_log import FORMATS
from espnet_ext.errors import UserError
from espnet_ext.log.clocks import Step, finish_times
from espnet_ext.log.instances import Instance, read_instances
from espnet_ext.log.simulstream import read_simulstream

STEPS = [Step(1000, 200, 3), Step(2000, 1500, 4), Step(3000, 100, 5), Step(3200, 50, 6)]


def instance(index, name, prediction, at):
    times = finish_times(STEPS)
    return Instance(
        index=index,
        utt_id=name,
        prediction=prediction,
        delays=[STEPS[step].audio_ms for step in at],
        elapsed=[max(times[step], STEPS[step].audio_ms) for step in at],
        source=[f"{name}.wav"],
        source_length=3200,
        steps=STEPS,
    )


LOG = [instance(0, "talk_1", "das ist ein Haus.", [0, 1, 1, 3]), instance(1, "talk_2", "", [])]


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "instances.log"
    path.write_text("".join(one.to_json() + "\n" for one in LOG), encoding="utf-8")
    return path


def convert(log, to, *options, lang="de"):
    output = log.with_name(f"{to}.log")
    convert_log.main([str(log), "--to", to, "--output", str(output), "--tgt_lang", lang, *options])
    return output


def test_simulstream_and_back(log):
    there = convert(log, "simulstream")
    lines = [json.loads(line) for line in there.read_text().splitlines()]
    assert lines[0] == {"id": 0, "metadata": {"wav_name": "talk_1.wav"}}
    assert lines[2] == {"id": 0, "total_audio_processed": 2.0, "computation_time": 1.5,
                        "generated_tokens": ["ist", "ein"], "deleted_tokens": []}  # fmt: skip
    back = read_instances(convert(there, "ours", "--format", "simulstream"), "de")
    for ours, other in zip(LOG, back, strict=True):
        work = [replace(step, forwards=0) for step in ours.steps]
        assert other == replace(ours, steps=work)


def test_the_log_of_any_tool_is_scored(log):
    (log.parent / "text").write_text("talk_1 das ist ein Haus.\ntalk_2 ja\n")
    found = {}
    for kind in FORMATS:
        given = log if kind == "ours" else convert(log, kind)
        options = [
            "--instances",
            given,
            "--format",
            kind,
            "--ref",
            log.parent / "text",
            "--output_dir",
            log.parent / kind,
        ]
        score_simul.main([*map(str, options), "--tgt_lang", "de"])
        found[kind] = json.loads((log.parent / kind / "scores.json").read_text())
    assert found["ours"]["LAAL"] is not None
    for scores in found.values():
        assert {name: scores[name] for name in ("BLEU", "LAAL", "LAAL_CA", "n_empty")} == {
            name: found["ours"][name] for name in ("BLEU", "LAAL", "LAAL_CA", "n_empty")
        }


def test_characters_of_a_language_without_blanks(tmp_path):
    log = tmp_path / "instances.log"
    log.write_text(instance(0, "a", "这是家", [0, 2, 2]).to_json() + "\n", encoding="utf-8")
    there = convert(log, "simulstream", lang="zh")
    (back,) = read_simulstream(there, "zh")
    assert (back.prediction, back.delays) == ("这是家", [1000, 3000, 3000])


def test_pieces_and_deletions_of_simulstream(tmp_path):
    chunks = [(["▁das", "▁Hau"], []), (["s", "▁ist"], []), (["▁war", "▁gro", "ß"], ["▁ist"])]
    path = tmp_path / "log"
    lines = [{"id": 7, "metadata": {"wav_name": "x/t.wav"}}]
    for number, (new, gone) in enumerate(chunks, start=1):
        lines.append({"id": 7, "total_audio_processed": float(number), "computation_time": 0.1,
                      "generated_tokens": new, "deleted_tokens": gone})  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (one,) = read_simulstream(path, "de")
    assert (one.utt_id, one.prediction, one.delays) == ("t", "das Haus war groß", [1000, 2000, 3000, 3000])
    assert one.elapsed == [1100, 2100, 3100, 3100]


def test_simuleval_and_omnisteval_take_their_keys(log):
    first = json.loads(convert(log, "simuleval").read_text().splitlines()[0])
    assert set(first) == {"index", "prediction", "delays", "elapsed", "prediction_length", "source", "source_length"}
    assert json.loads(convert(log, "omnisteval").read_text().splitlines()[1])["source"] == "talk_2.wav"
    validate_log.main([str(log.with_name("simuleval.log")), "--format", "simuleval"])
    validate_log.main([str(convert(log, "simulstream")), "--format", "simulstream", "--tgt_lang", "de"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "log:1: not JSON"),
        ('{"id": 1, "total_audio_processed": 1}', "log:1: id 1 has no line with metadata before"),
        ('{"id": 1, "metadata": {}}', "log:1: key 'wav_name' is missing"),
    ],
)
def test_a_broken_line_is_named(tmp_path, line, message):
    (tmp_path / "log").write_text(line + "\n")
    with pytest.raises(UserError, match=message):
        read_simulstream(tmp_path / "log", "de")


def chunk(**changes):
    return {"id": 0, "total_audio_processed": 1.0, "computation_time": 0.1, "generated_tokens": ["a"],
            "deleted_tokens": []} | changes  # fmt: skip


META = {"id": 0, "metadata": {"wav_name": "x.wav"}}


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([META, chunk(total_audio_processed=-1)], "log:2: key 'total_audio_processed' must be a number of at least 0"),
        ([META, chunk(total_audio_processed=True)], "log:2: key 'total_audio_processed' must be a number"),
        ([META, chunk(computation_time=float("nan"))], "log:2: key 'computation_time' must be a number"),
        ([META, chunk(total_audio_processed=2.0), chunk()], "log:3: key 'total_audio_processed' decreases"),
        ([META, chunk(generated_tokens="abc")], "log:2: key 'generated_tokens' must be a list of strings"),
        ([META, chunk(generated_tokens=[1, None])], "log:2: key 'generated_tokens' must be a list of strings"),
        ([META, chunk(deleted_tokens="a")], "log:2: key 'deleted_tokens' must be a list of strings"),
        ([META, [1, 2]], "log:2: not a JSON object"),
        ([META, "abc"], "log:2: not a JSON object"),
        ([META, {"total_audio_processed": 1.0}], "log:2: key 'id' is missing"),
        ([META, chunk(id=[0])], "log:2: key 'id' must be a string or a whole number"),
        ([{"id": 0, "metadata": "x"}], "log:1: key 'metadata' must be an object"),
        ([{"id": 0, "metadata": {"wav_name": 3}}], "log:1: key 'wav_name' must be a string"),
        ([{"id": 0, "metadata": {"wav_name": "a b.wav"}}], "'a b.wav': key 'utt_id' must be a word without blanks"),
        ([META, {"id": 1, "metadata": {"wav_name": "y/x.wav"}}], "'y/x.wav': another file's name is 'x' too"),
    ],
)
def test_what_simulstream_does_not_write_is_named(tmp_path, records, message):
    (tmp_path / "log").write_text("".join(json.dumps(record) + "\n" for record in records))
    with pytest.raises(UserError) as error:
        read_simulstream(tmp_path / "log", "de")
    assert message in str(error.value)


def test_files_that_one_client_sends_one_after_the_other_are_all_kept(tmp_path):
    records = [{"model_loading_time": 1.0}, META, chunk(), {"id": 0, "metadata": {"wav_name": "y.wav"}}, chunk()]
    (tmp_path / "log").write_text("".join(json.dumps(record) + "\n" for record in records))
    assert [(one.utt_id, one.prediction) for one in read_simulstream(tmp_path / "log", "de")] == [
        ("x", "a"),
        ("y", "a"),
    ]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    ("line", "message"), [("[" * 100_000, "nested too deeply"), ('{"id": "\\ud800"}', "half of a character")]
)
def test_what_no_tool_writes_is_one_line(tmp_path, kind, line, message):
    (tmp_path / "log").write_text(f"{line}\n")
    with pytest.raises(UserError, match=f"log:1: .*{message}"):
        validate_log.main([str(tmp_path / "log"), "--format", kind])


def test_chunks_need_steps(log):
    plain = convert(log, "simuleval")
    with pytest.raises(UserError, match="no key 'steps'"):
        convert(plain, "simulstream", "--format", "simuleval")


def test_a_log_is_not_replaced_by_its_conversion(log):
    before = log.read_bytes()
    with pytest.raises(UserError, match=r"output: .*instances\.log is an input"):
        convert_log.main([str(log), "--to", "simuleval", "--output", str(log), "--tgt_lang", "de"])
    assert log.read_bytes() == before
