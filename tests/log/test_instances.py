import dataclasses
import json

import pytest

from espnet_ext.errors import UserError
from espnet_ext.log.instances import Instance, InstanceWriter, Revision, Step, read_instances


def make(index, **changes):
    base = Instance(
        index=index,
        utt_id=f"utt{index}",
        prediction="zwei Wörter",
        delays=[320.0, 500.0],
        elapsed=[330.0, 520.0],
        source=["a.wav", "16000 Hz"],
        source_length=500.0,
        steps=[Step(320.0, 10.0, 3), Step(500.0, 20.0, 2)],
    )
    return dataclasses.replace(base, **changes)


def test_line_has_simulevals_keys_and_ours():
    record = json.loads(make(0).to_json())
    assert list(record) == [
        "index", "prediction", "delays", "elapsed", "prediction_length", "source", "source_length", "utt_id", "steps",
    ]  # fmt: skip
    assert record["prediction_length"] == 2
    assert record["steps"][0].items() >= {"audio_ms": 320.0, "compute_ms": 10.0, "forwards": 3}.items()


def test_optional_keys_appear_when_given_and_survive_a_round_trip():
    instance = make(0, reference="", revisions=[Revision(320.0, "drei")])
    assert {"reference", "revisions"} <= set(json.loads(instance.to_json()))
    assert Instance.from_json(instance.to_json()) == instance


def test_nan_is_never_written():
    with pytest.raises(ValueError):
        make(0, source_length=float("nan")).to_json()


def test_written_lines_are_read_back_also_empty_ones(tmp_path):
    lines = [make(0), make(1, prediction="", delays=[], elapsed=[], steps=[])]
    with InstanceWriter(tmp_path / "out" / "instances.log") as writer:
        for line in lines:
            writer.write(line)
    assert read_instances(tmp_path / "out" / "instances.log", "de") == lines


def test_each_line_is_on_disk_before_the_next(tmp_path):
    with InstanceWriter(tmp_path / "log") as writer:
        writer.write(make(0))
        assert len(read_instances(tmp_path / "log")) == 1


@pytest.mark.parametrize("cut", [1, 40, 100])
def test_resume_cuts_a_broken_last_line_and_goes_on(tmp_path, cut):
    path = tmp_path / "log"
    path.write_text(make(0).to_json() + "\n" + make(1).to_json()[:-cut], encoding="utf-8")
    with InstanceWriter(path) as writer:
        assert list(writer.done) == ["utt0"]
        writer.write(make(1))
    assert [instance.utt_id for instance in read_instances(path)] == ["utt0", "utt1"]


def test_resume_cuts_inside_a_character(tmp_path):
    path = tmp_path / "log"
    path.write_bytes((make(0).to_json() + "\n").encode() + '{"prediction": "W\u00f6'.encode()[:-1])
    with InstanceWriter(path) as writer:
        assert list(writer.done) == ["utt0"]


def test_resume_refuses_a_file_that_is_no_log(tmp_path):
    path = tmp_path / "log"
    path.write_text("hello\n")
    with pytest.raises(UserError, match="log:1: not JSON"):
        InstanceWriter(path)
    assert path.read_text() == "hello\n"


def test_writer_refuses_repeated_ids_skipped_indices_and_wrong_counts(tmp_path):
    with InstanceWriter(tmp_path / "log") as writer:
        writer.write(make(0))
        for bad in (make(1, utt_id="utt0"), make(2), make(1, prediction="drei Wörter hier")):
            with pytest.raises(ValueError):
                writer.write(bad)
    assert len(read_instances(tmp_path / "log")) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delays": [320.0]}, "'prediction_length' differs from the 1"),
        ({"delays": [320.0], "prediction_length": 1}, "'elapsed' has 2"),
        ({"delays": [500.0, 320.0]}, "'delays' decreases"),
        ({"delays": [320.0, "x"]}, "'delays' must be a list of numbers"),
        ({"delays": [320.0, True]}, "'delays' must be a list of numbers"),
        ({"elapsed": [310.0, 520.0]}, "'elapsed' has an entry below"),
        ({"elapsed": [600.0, 520.0]}, "'elapsed' decreases"),
        ({"delays": [320.0, 400.0]}, "'delays' has an entry that is no 'audio_ms' of 'steps'"),
        ({"source_length": 10**400}, "'source_length' must be a number"),
        ({"revisions": [{"audio_ms": a, "text": ""} for a in (2, 1)]}, "'revisions' has an 'audio_ms' that decreases"),
        ({"prediction": None}, "'prediction' must be a string"),
        ({"prediction": "drei Wörter hier"}, "the prediction has 3 units"),
        ({"source": "a.wav"}, "'source' must be a list"),
        ({"source_length": -1}, "'source_length'"),
        ({"source_length": float("nan")}, "'source_length'"),
        ({"delays": [320.0, float("inf")]}, "'delays' must be a list of numbers"),
        ({"utt_id": "a b"}, "'utt_id'"),
        ({"index": 4}, "'index' is 4, 0 is next"),
        ({"index": 0.0}, "'index' must be a whole number"),
        ({"steps": [{"audio_ms": 320.0, "compute_ms": 1.0}]}, "'forwards' is missing"),
        ({"steps": [{"audio_ms": a, "compute_ms": 1, "forwards": 1} for a in (2, 1)]}, "'audio_ms' that decreases"),
    ],
)
def test_reader_names_file_line_and_key(tmp_path, change, message):
    path = tmp_path / "log"
    path.write_text(json.dumps(json.loads(make(0).to_json()) | change) + "\n")
    with pytest.raises(UserError, match="log:1: ") as error:
        read_instances(path, "de")
    assert message in str(error.value)


def test_reader_refuses_a_missing_key_a_repeated_id_and_a_cut_line(tmp_path):
    path = tmp_path / "log"
    record = json.loads(make(0).to_json())
    del record["steps"]
    path.write_text(json.dumps(record) + "\n")
    with pytest.raises(UserError, match="log:1: key 'steps' is missing"):
        read_instances(path)
    path.write_text(make(0).to_json() + "\n" + make(1, utt_id="utt0").to_json() + "\n")
    with pytest.raises(UserError, match="log:2: key 'utt_id' repeats"):
        read_instances(path)
    path.write_text(make(0).to_json())
    with pytest.raises(UserError, match="log:1: the last line is cut off"):
        read_instances(path)


def test_simuleval_lines_need_none_of_our_keys(tmp_path):
    record = json.loads(make(7).to_json())
    del record["utt_id"], record["steps"]
    record["source"] = ["/data/talk_3.wav"]
    (tmp_path / "log").write_text(json.dumps(record) + "\n")
    (instance,) = read_instances(tmp_path / "log", simuleval=True)
    assert instance.utt_id == "talk_3"
