import filter_length
import perturb_speed
import pytest
import train_bpe
from dump_audio import main as dump_audio
from kaldi_dir import validate, write_table

from espnet_ext.errors import UserError
from espnet_ext.files import read_lines, read_table


def write_text(path, count):
    write_table(path, {f"u{i:03d}": f"das ist satz nummer {i} und noch ein wort {i * 7}" for i in range(count)})
    return path


def bpe(text, output, nbpe, *options):
    train_bpe.main(["--text", str(text), "--lang", "de", "--nbpe", str(nbpe), "--output_dir", str(output), *options])
    return read_lines(output / "tokens.txt")


def test_the_token_list_follows_espnet(tmp_path):
    tokens = bpe(write_text(tmp_path / "text", 60), tmp_path / "bpe", 50)
    assert len(tokens) == 50 == len(set(tokens))
    assert tokens[:2] == ["<blank>", "<unk>"] and tokens[-1] == "<sos/eos>"
    assert "<s>" not in tokens


@pytest.mark.parametrize("nbpe", [4000, 5])
def test_an_impossible_number_of_tokens_gets_the_valid_range(tmp_path, nbpe):
    text = write_text(tmp_path / "text", 60)
    with pytest.raises(UserError, match=r"choose (\d+) to (\d+)") as error:
        bpe(text, tmp_path / "bpe", nbpe)
    assert not (tmp_path / "bpe").exists()
    low, high = (int(word) for word in str(error.value).split(" choose ")[1].split(" to "))
    assert len(bpe(text, tmp_path / "low", low)) == low
    assert len(bpe(text, tmp_path / "high", high)) == high


def test_a_soft_limit_takes_what_the_text_allows(tmp_path):
    assert len(bpe(write_text(tmp_path / "text", 60), tmp_path / "bpe", 4000, "--hard_vocab_limit", "false")) < 4000


def test_a_very_long_line_is_not_left_out(tmp_path):
    write_table(tmp_path / "text", {"long": "ß " * 5000, "short": "eins zwei drei"})
    assert any("ß" in token for token in bpe(tmp_path / "text", tmp_path / "bpe", 30, "--hard_vocab_limit", "false"))


def test_text_that_is_missing_or_empty_is_an_error(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        bpe(tmp_path / "text", tmp_path / "bpe", 50)
    write_table(tmp_path / "text", {"a": "", "b": ""})
    with pytest.raises(UserError, match="no text to train on"):
        bpe(tmp_path / "text", tmp_path / "bpe", 50)


def test_the_length_filter_keeps_what_training_can_use(release, prepare, tmp_path, capsys):
    release.write_wav("train", "ted_1.wav", 40.0)
    entries = [release.segment(0, d) for d in (0.05, 1, 35, 2)]
    release.write_split("train", entries, en=["a", "b", "c", "♫"], de=["a", "b", "c", "d"])
    dump_audio(["--data", str(prepare() / "train.en-de"), "--output_dir", str(tmp_path / "org")])
    options = ["--dump", str(tmp_path / "org"), "--output_dir", str(tmp_path / "dump"), "--tgt_lang", "de"]
    filter_length.main([*options, "--max_s", "30"])
    said = capsys.readouterr().out
    assert "kept 1 of 4 utterances; 1 without text, 1 shorter than 0.1 s, 1 longer than 30 s" in said
    assert validate(tmp_path / "dump") == 1
    assert list(read_table(tmp_path / "dump" / "wav.scp")) == ["ted_00001-00002"]
    with pytest.raises(UserError, match="no utterance of 50"):
        filter_length.main([*options, "--min_s", "50", "--max_s", "60"])
    with pytest.raises(UserError, match=r"needs text\.tc\.fr"):
        filter_length.main([*options[:-1], "fr"])


def test_no_directory_is_replaced_by_what_is_made_of_it(release, prepare):
    release.write_wav("train", "ted_1.wav", 4.0)
    release.write_split("train", [release.segment(0, 2)], en=["a b"], de=["a b"])
    data = prepare() / "train.en-de"
    text = str(data / "text.tc.de")
    for main, options in (
        (filter_length.main, ("--dump", str(data), "--tgt_lang", "de")),
        (perturb_speed.main, ("--data", str(data), "--factors", "0.9")),
        (dump_audio, ("--data", str(data))),
        (train_bpe.main, ("--text", text, "--lang", "de", "--nbpe", "30")),
    ):
        with pytest.raises(UserError, match=r"output_dir: .*train\.en-de is an input"):
            main([*options, "--output_dir", str(data)])
    assert validate(data)


def test_a_frequent_word_that_no_other_contains_is_one_piece(tmp_path):
    """Sentencepiece alone takes no candidate that stands in one word only."""
    lines = ["she sees him", "she finds you", "she knows them"] * 20
    text = tmp_path / "text"
    text.write_text("".join(f"u{i:03d} {line}\n" for i, line in enumerate(lines)))
    train_bpe.main(["--text", str(text), "--lang", "en", "--nbpe", "24", "--output_dir", str(tmp_path / "out")])
    assert "▁she" in (tmp_path / "out" / "tokens.txt").read_text().split("\n")
