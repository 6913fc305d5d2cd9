"""A recipe for another language pair: what `fork.sh` makes, and docs/forking.md run as it stands."""

import os
import re
import shutil
import subprocess
import sys

import dump_audio
import filter_length
import prepare_mustc
import pytest
import train_bpe
from conftest import RECIPE
from kaldi_dir import validate

from espnet_ext.files import read_lines

ROOT = RECIPE.parents[1]
DOCS = (ROOT / "docs" / "forking.md").read_text(encoding="utf-8")


@pytest.fixture
def checkout(tmp_path):
    """A checkout of the recipe alone, with links to the rest."""
    ignored = shutil.ignore_patterns("data", "downloads", "dump", "exp", "__pycache__")
    shutil.copytree(RECIPE, tmp_path / "egs2" / RECIPE.name, symlinks=True, ignore=ignored)
    for name in ("espnet_ext", "tools", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def bash(script, cwd):
    environment = os.environ | {"VIRTUAL_ENV": sys.prefix}
    return subprocess.run(
        ["bash", "-euc", script], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def test_a_fork_has_its_own_settings_and_shares_the_code(checkout):
    made = bash("egs2/mustc_st_block/fork.sh talks_ja --src de --tgt 'ja zh'", checkout)
    assert made.returncode == 0, made.stderr
    fork, original = checkout / "egs2" / "talks_ja", checkout / "egs2" / RECIPE.name
    for name in ("run.sh", "path.sh", "local", "utils"):
        assert (fork / name).is_symlink() and (fork / name).resolve() == original / name
    own = {path.relative_to(fork).as_posix() for path in fork.rglob("*") if path.is_file() and not path.is_symlink()}
    confs = {f"conf/{path.name}" for path in original.glob("conf/*") if path.is_file()}
    assert own == {"db.sh", "cmd.sh", "README.md"} | confs
    run = bash("egs2/talks_ja/run.sh", checkout)
    assert run.returncode == 2 and run.stderr.count("\n") == 1
    assert run.stderr.startswith("error: no corpus at downloads/corpus/de-ja/data in ")
    assert str(checkout) not in "".join(path.read_text() for path in fork.glob("*.sh"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "name the new recipe"),
        ("--tgt ja", "name the new recipe first"),
        ("a/b --tgt ja", "'a/b' is no name for a recipe"),
        (".. --tgt ja", "'..' is no name for a recipe"),
        ("'two words' --tgt ja", "'two words' is no name for a recipe"),
        ("mustc_st_block --tgt ja", "egs2/mustc_st_block is there already"),
        ("x", "--tgt is missing"),
        ("x --tgt xx", "'xx' is no language: give its ISO 639-1 code"),
        ("x --src jp --tgt en", "'jp' is no language"),
        ("x --src 'en de' --tgt ja", "--src 'en de': give one language"),
        ("x --tgt en", "--src en --tgt en: a translation is into another language"),
        ("x --tgt ja --conf conf/no", "--conf conf/no: no such settings"),
        ("x --tgt ja --nonsense 1", "unknown option --nonsense"),
    ],
)
def test_a_bad_name_or_language_is_one_line_and_makes_nothing(checkout, arguments, message):
    result = bash(f"egs2/mustc_st_block/fork.sh {arguments}", checkout)
    assert result.returncode == 2
    assert result.stderr.startswith("error: ") and message in result.stderr and result.stderr.count("\n") == 1
    assert [path.name for path in (checkout / "egs2").iterdir()] == [RECIPE.name]


@pytest.mark.slow
def test_the_walk_through_runs_up_to_the_token_lists(checkout):
    *steps, last = re.findall(r"^```bash\n(.*?)^```", DOCS, flags=re.MULTILINE | re.DOTALL)
    assert last.strip() == "egs2/mini_es/run.sh --stage 6"
    script = "".join(steps).replace("--tgt_lang es", "--tgt_lang es --hours 0.05 --test_talks 4")
    run = bash(script.replace("--stop_stage 5", "--stop_stage 5 --nbpe_src 60 --nbpe_tgt 80"), checkout)
    assert run.returncode == 0, run.stderr
    fork = checkout / "egs2" / "mini_es"
    assert validate(fork / "dump" / "train.en-es") > 10
    assert len(read_lines(fork / "data" / "token_list.en-es" / "tgt" / "tokens.txt")) == 80
    assert not (checkout / "egs2" / RECIPE.name / "data").exists()
    again = bash("egs2/mini_es/run.sh --stop_stage 5 --nbpe_src 60 --nbpe_tgt 80", checkout)
    assert again.returncode == 0 and again.stdout.count("done already") == 8


def test_a_language_without_spaces_goes_through_the_data_stages(release, tmp_path):
    lines = ["東京は今日とても暑いです。", "東京は明日とても寒いです。"]
    for split in release.SPLITS:
        release.write_split(split, [release.segment(0, 1), release.segment(2, 1)], de=lines)
        (release.data(split) / "txt" / f"{split}.de").rename(release.data(split) / "txt" / f"{split}.ja")
    (release.root / "en-de").rename(release.root / "en-ja")
    data, dump = tmp_path / "data", tmp_path / "dump"
    prepare_mustc.main(["--mustc_dir", str(release.root), "--tgt_lang", "ja", "--data_dir", str(data)])
    dump_audio.main(["--data", str(data / "train.en-ja"), "--output_dir", str(tmp_path / "org")])
    filter_length.main(["--dump", str(tmp_path / "org"), "--output_dir", str(dump), "--tgt_lang", "ja"])
    text = str(dump / "text.tc.ja")
    train_bpe.main(["--text", text, "--lang", "ja", "--nbpe", "21", "--output_dir", str(tmp_path / "tokens")])
    tokens = read_lines(tmp_path / "tokens" / "tokens.txt")
    assert len(tokens) == 21 and {"<blank>", "東"} <= set(tokens)
    assert 1 < max(map(len, tokens[2:-1])) < len(lines[0]), "tokens are parts of the sentences"


def test_another_source_language_is_found_by_its_table(release, tmp_path):
    for split in release.SPLITS:
        txt = release.data(split) / "txt"
        (txt / f"{split}.en").rename(txt / f"{split}.fr")
    (release.root / "en-de").rename(release.root / "fr-de")
    options = ["--mustc_dir", str(release.root), "--src_lang", "fr", "--tgt_lang", "de"]
    prepare_mustc.main([*options, "--data_dir", str(tmp_path / "data")])
    dump_audio.main(["--data", str(tmp_path / "data" / "dev.fr-de"), "--output_dir", str(tmp_path / "org")])
    filter_length.main(["--dump", str(tmp_path / "org"), "--output_dir", str(tmp_path / "dump"), "--tgt_lang", "de"])
    assert (tmp_path / "dump" / "text.lc.rm.fr").read_text().startswith("ted_00001-00001 don't panic number 0\n")
