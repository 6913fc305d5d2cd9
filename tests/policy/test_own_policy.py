"""A user's policy: that of docs/own_policy.md in a decode, its name in logs, and what is refused."""

import json
import re
import sys
from pathlib import Path

import pytest
import soundfile

from espnet_ext import SimulSession
from espnet_ext.bin import st_inference_simul
from espnet_ext.errors import UserError
from espnet_ext.policy import HoldN

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "own_policy.md").read_text(encoding="utf-8")


class Hold2:
    """Hold-2 again; counts how often it is asked and reset."""

    needs_attention = True

    def __init__(self):
        self.inner, self.asked, self.resets = HoldN(2), 0, 0

    def reset(self):
        self.resets += 1

    def stable_length(self, context):
        self.asked += 1
        assert context.attention().shape == (len(context.tokens) - context.committed, context.frames)
        return self.inner.stable_length(context)


class Extreme:
    """As wrong as a number can be."""

    def reset(self):
        self.times = 0

    def stable_length(self, context):
        self.times += 1
        return 10**6 if self.times % 2 else -5


class NoReset:
    def stable_length(self, context):
        return 0


def translated(session, samples):
    session.push(samples)
    session.finish()
    return session.text, session.delays


def test_an_object_decides_as_the_built_in_policy_does_and_names_itself(tiny, speech):
    own = Hold2()
    session = SimulSession(tiny, search="ibwbs", policy=own, align_att_layer=2)
    built_in = SimulSession(tiny, search="ibwbs", policy="hold_n", hold_n=2)
    assert translated(session, speech(6)) == translated(built_in, speech(6))
    assert own.asked > 3 and own.resets == 1
    assert session.config.policy == f"{__name__}:Hold2"


def test_numbers_out_of_range_commit_everything_or_nothing_new(tiny, speech):
    text, delays = translated(SimulSession(tiny, policy=Extreme()), speech(6))
    assert text and delays == sorted(delays)


@pytest.fixture
def here(tmp_path, monkeypatch, tiny_paths, speech):
    """A directory with the page's policy, a model and data, as the page's commands name them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "my_policy", raising=False)
    (tmp_path / "my_policy.py").write_text(re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.DOTALL)[0])
    (tmp_path / "exp").mkdir()
    (tmp_path / "exp" / "st_block40.en-de").symlink_to(Path(tiny_paths["st_train_config"]).parent)
    data = tmp_path / "data" / "tst-COMMON.en-de"
    data.mkdir(parents=True)
    soundfile.write(data / "a.wav", speech(5), 16000)
    (data / "wav.scp").write_text(f"a {data}/a.wav\n")
    (data / "segments").write_text("a1 a 0 2.5\na2 a 2.5 5\n")
    return tmp_path


def test_a_decode_names_it_and_a_report_takes_it(here):
    options = ["--model", "exp/st_block40.en-de", "--policy", "my_policy:Cautious", "--output_dir", "out"]
    data = "data/tst-COMMON.en-de"
    st_inference_simul.main(
        [*options, "--data_path_and_name_and_type", f"{data}/wav.scp,speech,sound", "--segments", f"{data}/segments"]
    )
    stats = json.loads((here / "out" / "stats.json").read_text())
    assert stats["policy"] == "my_policy:Cautious" and stats["system"] == "ibwbs_my_policy.Cautious"
    assert "policy: my_policy:Cautious" in (here / "out" / "config.yaml").read_text()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my_policy:Nobody", "no attribute 'Nobody'"),
        ("nowhere_at_all:Policy", "No module named 'nowhere_at_all'"),
        (f"{__name__}:NoReset", "no method reset"),
        ("espnet_ext.policy:HoldN", "takes no arguments"),
        (":", "takes no arguments"),
        ("os:getcwd", "not a class"),
        ("broken:Policy", "invalid syntax (broken.py, line 1)"),
        ("hold", "'hold' is not one of all, hold_n"),
    ],
)
def test_a_name_that_is_no_policy_is_one_line(here, name, message):
    (here / "broken.py").write_text("class Policy(:\n")
    arguments = ["--model", "exp/st_block40.en-de", "--policy", name, "--output_dir", "out"]
    with pytest.raises(UserError, match="^policy: ") as caught:
        st_inference_simul.main(["--data_path_and_name_and_type", "x,speech,sound", *arguments])
    assert message in str(caught.value)


def test_a_session_imports_nothing_by_name(tiny):
    with pytest.raises(UserError, match="give the session the object"):
        SimulSession(tiny, policy="os:system")


def test_an_object_that_is_no_policy_is_refused(tiny):
    with pytest.raises(UserError, match="NoReset has no method reset"):
        SimulSession(tiny, policy=NoReset())
