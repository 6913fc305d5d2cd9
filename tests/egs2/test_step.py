import pytest
from step import Step, new_directory


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "input"
    path.write_text("one", encoding="utf-8")
    return path


def finished(tmp_path, source, settings=None):
    step = Step(tmp_path / "out" / ".done", settings or {"n": 1}, [source])
    (tmp_path / "out").mkdir(exist_ok=True)
    (tmp_path / "out" / "result").write_text("result", encoding="utf-8")
    step.finish([tmp_path / "out" / "result"])
    return step


def test_a_finished_step_is_done_and_says_so_with_its_stage(tmp_path, source, capsys, monkeypatch):
    monkeypatch.setenv("STAGE", "3")
    assert finished(tmp_path, source).is_done("out")
    assert capsys.readouterr().out == "stage 3: done already: out\n"


def test_it_is_not_done_when_input_settings_or_output_differ(tmp_path, source):
    marker = tmp_path / "out" / ".done"
    finished(tmp_path, source)
    assert not Step(marker, {"n": 2}, [source]).is_done("out")
    (tmp_path / "out" / "result").write_text("resul", encoding="utf-8")
    assert not Step(marker, {"n": 1}, [source]).is_done("out")
    finished(tmp_path, source)
    source.write_text("two", encoding="utf-8")
    assert not Step(marker, {"n": 1}, [source]).is_done("out")


def test_a_broken_marker_is_no_mark(tmp_path, source):
    step = finished(tmp_path, source)
    step.marker.write_text(step.marker.read_text(encoding="utf-8")[:20], encoding="utf-8")
    assert not step.is_done("out")


def test_work_of_the_same_step_is_kept_and_of_another_removed(tmp_path, source):
    directory = tmp_path / "work"
    Step(directory / ".done", {}, [source]).resume(directory)
    (directory / "half").write_text("half", encoding="utf-8")
    Step(directory / ".done", {}, [source]).resume(directory)
    assert (directory / "half").exists()
    source.write_text("two", encoding="utf-8")
    Step(directory / ".done", {}, [source]).resume(directory)
    assert not (directory / "half").exists()


def test_a_directory_appears_whole_or_stays_as_it_was(tmp_path):
    target = tmp_path / "data"
    with new_directory(target) as temporary:
        (temporary / "old").touch()
    with pytest.raises(KeyboardInterrupt), new_directory(target) as temporary:
        (temporary / "new").touch()
        raise KeyboardInterrupt
    assert [path.name for path in target.iterdir()] == ["old"]
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    with new_directory(target) as temporary:
        (temporary / "new").touch()
    assert [path.name for path in target.iterdir()] == ["new"]
