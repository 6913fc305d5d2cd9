import csv
import json
import math
import random

import pytest

from espnet_ext.bin import report_simul
from espnet_ext.errors import UserError

OFFLINE = 91.0


def decode(exp, model, system, test_set, search, policy, bleu, laal, **changes):
    """One finished and scored decode, as the decoder and score_simul leave it."""
    lang = model.rpartition("-")[2]
    args = {key: changes.pop(key) for key in ("hold_n", "la_n", "align_att_f", "reliability") if key in changes}
    meta = {
        "system": system,
        "model_dir": f"exp/{model}",
        "block_size": int("".join(filter(str.isdigit, model)) or 0) or None,
        "search": search,
        "policy": policy,
        "policy_args": args,
        "variant": changes.pop("variant", {}),
        "chunk_ms": changes.pop("chunk_ms", 640),
        "beam_size": 6,
        "tgt_lang": lang,
        "test_set": test_set,
        "commit": "0123abcd",
        "versions": {"espnet": "202611", "torch": "2.14.1"},
    }
    stats = meta | {"decoder_forwards": 9000, "hypothesis_steps": 50000, "searches": 3000, "audio_s": 1500.0,
                    "wall_s": 300.0, "rtf": 0.2, "peak_rss_mb": 700.0}  # fmt: skip
    scores = meta | {"BLEU": bleu, "BLEU_signature": "nrefs:1|tok:13a", "chrF": bleu + 2, "CA_clock": "queue",
                     "NE": None, "words_at_end": 0.3, "n_total": 200, "n_empty": 0}  # fmt: skip
    for metric, factor in (("AL", 0.95), ("LAAL", 1), ("DAL", 1.2), ("ATD", 0.8), ("YAAL", 0.97), ("AP", 2e-4)):
        scores[metric] = None if laal is None else laal * factor
        scores[f"{metric}_CA"] = None if laal is None else laal * factor * 1.1
    stats |= {key: value for key, value in changes.items() if key in stats}
    scores |= {key: value for key, value in changes.items() if key in scores}
    directory = exp / "decode" / model / system / test_set
    (directory / "score").mkdir(parents=True)
    (directory / "stats.json").write_text(json.dumps(stats))
    (directory / "score" / "scores.json").write_text(json.dumps(scores))
    return directory


def experiment(exp, langs=("de",), sets=("dev", "tst-COMMON")):
    """A whole grid with plausible curves."""
    noise = random.Random(7)
    for lang in langs:
        for name in (f"{one}.en-{lang}" for one in sets):
            for block, loss, base in ((20, 2.5, 700), (40, 0, 1500)):
                model = f"st_block{block}.en-{lang}"
                decode(exp, model, "offline", name, "offline", "all", OFFLINE - loss, 6200, words_at_end=1.0)
                decode(exp, model, "bwbs", name, "bwbs", "all", 90.5 - loss, None, NE=0.31, words_at_end=1.0)
                decode(exp, model, "bwbs_incremental_all", name, "bwbs_incremental", "all", 88.9 - 4 * loss,
                       2 * base, decoder_forwards=6000)  # fmt: skip
                for rel in (True, False):
                    decode(exp, model, f"ibwbs_all{'' if rel else '_norel'}", name, "ibwbs", "all",
                           45 - 5 * loss, base * 0.3, reliability=rel)  # fmt: skip
            model = f"st_block40.en-{lang}"
            for n in range(2, 17, 2):
                rise = 1 - math.exp(-n / 3.5)
                jitter = noise.uniform(-0.5, 0.5)
                decode(exp, model, f"bwbs_incremental_hold_n{n}", name, "bwbs_incremental", "hold_n", 89.2 + 0.1 * n
                       + jitter / 2, 2900 + 110 * n, hold_n=n, words_at_end=0.45 + 0.03 * n,
                       decoder_forwards=7000 + 200 * n)  # fmt: skip
                for rel, drop in ((True, 0), (False, 4)):
                    decode(exp, model, f"ibwbs_hold_n{n}{'' if rel else '_norel'}", name, "ibwbs", "hold_n",
                           48 + (OFFLINE - 47.5 - drop) * rise + jitter, 500 + 190 * n + 20 * drop, hold_n=n,
                           reliability=rel, words_at_end=0.1 + 0.03 * n,
                           decoder_forwards=8000 + 500 * n + 1500 * drop)  # fmt: skip
            decode(exp, model, "bwbs_incremental_la2", name, "bwbs_incremental", "local_agreement", 90.6, 3400, la_n=2)
            for rel in (True, False):
                decode(exp, model, f"ibwbs_la2{'' if rel else '_norel'}", name, "ibwbs", "local_agreement",
                       89.4 - 3 * (not rel), 2100, la_n=2, reliability=rel)  # fmt: skip
    return exp


def report(exp, *options):
    report_simul.main(["--exp_dir", str(exp), "--output_dir", str(exp / "report"), *options])
    return exp / "report"


def read_tsv(path):
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    exp = experiment(tmp_path_factory.mktemp("exp"))
    return report(exp)


def test_every_file_of_the_report_is_there(finished):
    names = {path.name for path in finished.iterdir()}
    for stem in ("figure_tradeoff", "figure2a", "figure2b", "figure2c"):
        assert {f"{stem}.png", f"{stem}.svg"} <= names
        assert (finished / f"{stem}.png").stat().st_size > 10_000
    assert {"table1.md", "table1.tsv", "table2.md", "table2.tsv", "results.tsv", "checks.json", "report.md"} <= names


def test_results_have_a_row_a_decode_with_undefined_as_nan(finished):
    rows = read_tsv(finished / "results.tsv")
    assert len(rows) == 2 * (2 * 5 + 8 * 3 + 3)
    (bwbs,) = (r for r in rows if (r["model"], r["system"], r["set"]) == ("st_block40.en-de", "bwbs", "dev.en-de"))
    assert bwbs["LAAL"] == bwbs["AP_CA"] == bwbs["hold_n"] == "nan"
    assert bwbs["BLEU"] == "90.5"
    (held,) = (r for r in rows if r["system"] == "ibwbs_hold_n6_norel" and r["set"].startswith("tst"))
    assert (held["hold_n"], held["reliability"], held["block_size"]) == ("6", "false", "40")
    assert json.loads(held["versions"]) == {"espnet": "202611", "torch": "2.14.1"}


def test_table_1_compares_retranslation_with_incremental_pruning_for_each_block(finished):
    rows = read_tsv(finished / "table1.tsv")
    assert [row["block"] for row in rows] == ["20", "40"]
    assert rows[1]["re-translation BLEU"] == "90.5"
    assert rows[1]["incremental BLEU"] == "88.9"
    assert rows[1]["difference"] == "-1.6"
    assert rows[1]["NE"] == "0.31"


def test_table_2_chooses_on_dev_and_reports_on_test(tmp_path):
    for name, laals in (("dev", (2000, 2250)), ("tst-COMMON", (2300, 2900))):
        for n, laal in zip((4, 6), laals, strict=True):
            for search in ("ibwbs", "bwbs_incremental"):
                decode(tmp_path, "st_block40.en-de", f"{search}_hold_n{n}", f"{name}.en-de", search, "hold_n", 80 + n,
                       laal, hold_n=n)  # fmt: skip
    rows = read_tsv(report(tmp_path) / "table2.tsv")
    assert [row["search"] for row in rows] == ["BWBS", "IBWBS"]
    assert {row["chosen on dev"] for row in rows} == {"hold-6"}
    assert {row["test LAAL (ms)"] for row in rows} == {"2900"}


def test_checks_compare_the_curves_near_offline_quality(finished):
    (record,) = json.loads((finished / "checks.json").read_text())
    assert record["offline_bleu"] == OFFLINE
    assert set(record["latency_saving"]) == {"IBWBS", "IBWBS without reliability"}
    saving = record["latency_saving"]["IBWBS"]
    assert saving["bleu"] == OFFLINE - 3
    assert saving["baseline_latency"] is None
    assert saving["undefined"].startswith("baseline spans BLEU 89.")
    assert record["hold_n_range"]["IBWBS"]["ratio"] == pytest.approx((500 + 190 * 16) / (500 + 190 * 2))
    assert record["hold_n_range"]["IBWBS"]["passed"] is True


def test_a_saving_is_measured_when_both_curves_reach_the_target(tmp_path):
    model, name = "st_block40.en-de", "tst-COMMON.en-de"
    decode(tmp_path, model, "offline", name, "offline", "all", 90, 6000)
    for search, laals in (("ibwbs", (1000, 2000)), ("bwbs_incremental", (2000, 4000))):
        for n, bleu, laal in zip((2, 16), (84, 90), laals, strict=True):
            decode(tmp_path, model, f"{search}_hold_n{n}", name, search, "hold_n", bleu, laal, hold_n=n)
    output = report(tmp_path)
    (record,) = json.loads((output / "checks.json").read_text())
    saving = record["latency_saving"]["IBWBS"]
    assert (saving["system_latency"], saving["baseline_latency"]) == (1500, 3000)
    assert saving["saving_percent"] == pytest.approx(50)
    assert saving["passed"] is True
    assert "50.0 % less" in (output / "report.md").read_text()


def test_report_names_versions_commit_command_and_pictures(finished):
    text = (finished / "report.md").read_text()
    for part in ("0123abcd", '"torch": "2.14.1"', "python -m espnet_ext.bin.report_simul", "(figure2c.png)", "Table 2"):
        assert part in text
    assert "- none" in text


def test_missing_and_incomplete_decodes_are_listed(tmp_path):
    exp = tmp_path
    for system in ("offline", "ibwbs_all"):
        decode(exp, "st_block40.en-de", system, "tst-COMMON.en-de", system.removesuffix("_all"), "all", 80, 1000)
    decode(exp, "st_block40.en-de", "offline", "dev.en-de", "offline", "all", 80, 1000)
    killed = exp / "decode" / "st_block40.en-de" / "bwbs" / "tst-COMMON.en-de"
    killed.mkdir(parents=True)
    (exp / "decode/st_block40.en-de/offline/dev.en-de/score/scores.json").unlink()
    text = (report(exp) / "report.md").read_text()
    assert "`decode/st_block40.en-de/bwbs/tst-COMMON.en-de`: decoding has not ended" in text
    assert "`decode/st_block40.en-de/offline/dev.en-de`: not scored" in text
    assert "`decode/st_block40.en-de/ibwbs_all/dev.en-de`: not decoded" in text


def test_several_languages_share_the_report(tmp_path):
    output = report(experiment(tmp_path, langs=("de", "fr"), sets=("tst-COMMON",)))
    assert [row["language"] for row in read_tsv(output / "table1.tsv")] == ["de", "de", "fr", "fr"]
    assert [record["tgt_lang"] for record in json.loads((output / "checks.json").read_text())] == ["de", "fr"]


def test_figures_are_the_same_bytes_for_the_same_numbers(finished):
    first = {path.name: path.read_bytes() for path in finished.glob("figure*")}
    report_simul.main(["--exp_dir", str(finished.parent), "--output_dir", str(finished)])
    assert {path.name: path.read_bytes() for path in finished.glob("figure*")} == first


def test_bad_input_is_named(tmp_path):
    with pytest.raises(UserError, match="no decodes, run stages 11 and 12"):
        report(tmp_path)
    directory = decode(tmp_path, "st_block40.en-de", "offline", "dev.en-de", "offline", "all", 80, 1000)
    with pytest.raises(UserError, match="no scored decode of the set tst-COMMON"):
        report(tmp_path)
    (directory / "stats.json").write_text("{")
    with pytest.raises(UserError, match="stats.json:1: not JSON"):
        report(tmp_path)
    (directory / "stats.json").write_text("{}")
    with pytest.raises(UserError, match="stats.json: key 'search' is missing"):
        report(tmp_path)


def test_a_decode_with_other_options_has_a_row_of_its_own_and_is_on_no_curve(tmp_path):
    exp = experiment(tmp_path)
    for name in ("dev.en-de", "tst-COMMON.en-de"):
        decode(exp, "st_block40.en-de", "ibwbs_hold_n6_ctc_weight_0.3", name, "ibwbs", "hold_n", 99.0, 100, hold_n=6,
               variant={"ctc_weight": 0.3})  # fmt: skip
    made = report(exp)
    row = next(row for row in read_tsv(made / "systems.tsv") if row["BLEU"] == "99.0")
    assert row["policy"] == "hold-6, ctc_weight 0.3"
    (record,) = json.loads((made / "checks.json").read_text())
    assert record["hold_n_range"]["IBWBS"]["max_bleu"] < 99


def test_full_context_models_are_compared_at_the_same_policy_and_step(tmp_path):
    exp = experiment(tmp_path)
    for name in ("dev.en-de", "tst-COMMON.en-de"):
        for chunk, variant, search, rel, forwards in (
            (280, {}, "standard", True, 1000),
            (280, {"end_detect": True}, "standard", True, 1500),
            (280, {}, "ibwbs", True, 800),
            (280, {"reliability": False}, "ibwbs", False, 1300),
            (560, {"chunk_ms": 560}, "ibwbs", True, 500),
        ):
            system = f"{search}_la2_{chunk}_{len(variant)}"
            decode(exp, "st_offline.en-de", system, name, search, "local_agreement", 70.0, 2000, la_n=2,
                   reliability=rel, variant=variant, chunk_ms=chunk, decoder_forwards=forwards)  # fmt: skip
    rows = read_tsv(report(exp) / "table3.tsv")
    shown = [(row["step (ms)"], row["search"], row["against standard (%)"]) for row in rows]
    assert shown == [
        ("280", "Standard beam search", "0"),
        ("280", "Standard beam search, ESPnet's end detection", "50"),
        ("280", "IBWBS", "-20"),
        ("280", "IBWBS without reliability", "30"),
        ("560", "IBWBS", "nan"),
    ]
    assert "Full-context models" in (exp / "report" / "report.md").read_text()


def test_talks_have_a_table_of_their_own_beside_alignatt_on_segments(tmp_path):
    exp = experiment(tmp_path)
    for name in ("dev.en-de", "tst-COMMON.en-de"):
        for search, bleu in (("ibwbs", 80.0), ("standard", 60.0)):
            system = f"{search}_align_att4"
            decode(exp, "st_block40.en-de", system, name, search, "align_att", bleu, 2500, align_att_f=4)
        for history, bleu in (("fixed_words", 70.0), ("punctuation", 72.0)):
            variant = {"long_form": True} | ({} if history == "fixed_words" else {"text_history": history})
            made = decode(exp, "st_block40.en-de", f"ibwbs_align_att4_{history}", f"{name}_talks", "ibwbs", "align_att",
                          bleu, None, align_att_f=4, variant=variant)  # fmt: skip
            scores = json.loads((made / "score" / "scores.json").read_text())
            kept = {key: value for key, value in scores.items() if key.removesuffix("_CA") not in ("LAAL", "AL", "AP")}
            kept |= {"StreamLAAL": 2100, "StreamLAAL_CA": 2200, "LongYAAL": 2050}
            (made / "score" / "scores.json").write_text(json.dumps(kept))
    made = report(exp)
    shown = ("search", "system", "f", "BLEU", "StreamLAAL (ms)")
    rows = [tuple(row[key] for key in shown) for row in read_tsv(made / "longform.tsv")]
    assert rows == [
        ("IBWBS", "AlignAtt, segmented audio", "4", "80.0", "2500"),
        ("IBWBS", "StreamAtt, fixed words", "4", "70.0", "2100"),
        ("IBWBS", "StreamAtt, punctuation", "4", "72.0", "2100"),
        ("Standard beam search", "AlignAtt, segmented audio", "4", "60.0", "2500"),
    ]
    assert "none" in (made / "report.md").read_text().split("Missing or incomplete decodes")[1]


def add_talks(exp, test_set, system, bleu, laal, f=4, **variant):
    """A decode of whole talks by the full-context model."""
    made = decode(exp, "st_offline.en-de", f"{system}_{f}", f"{test_set}.en-de_talks", "ibwbs", "align_att", bleu, None,
                  align_att_f=f, variant={"long_form": True, "max_audio_s": 15.0} | variant)  # fmt: skip
    path = made / "score" / "scores.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"StreamLAAL": laal, "StreamLAAL_CA": laal + 100}))


def test_the_papers_figures_stand_beside_ours_which_are_empty_unless_they_are_of_mustc(tmp_path):
    exp = experiment(tmp_path)
    for name in ("dev", "tst-COMMON"):
        add_talks(exp, name, "fw", 22.0, 1900)
        add_talks(exp, name, "p", 21.0, 2000, text_history="punctuation")
        add_talks(exp, name, "base", 15.0, 3000, audio_history="fixed_duration")
        add_talks(exp, name, "fw10", 23.0, 2400, n_words=10)
        for step, search, policy, bleu, laal, forwards in (
            (280, "ibwbs", "local_agreement", 24.0, 1700, 800),
            (280, "standard", "local_agreement", 18.0, 1750, 1000),
            (560, "standard", "local_agreement", 24.2, 2600, 900),
            (280, "ibwbs", "hold_n", 23.0, 1690, 600),
            (280, "standard", "hold_n", 23.1, 1710, 800),
        ):
            option = {"la_n": 2} if policy == "local_agreement" else {"hold_n": 4}
            decode(exp, "st_offline.en-de", f"{search}_{policy}_{step}", f"{name}.en-de", search, policy, bleu, laal,
                   chunk_ms=step, decoder_forwards=forwards, **option)  # fmt: skip
    made = report(exp)
    for name in ("ibwbs_paper", "streamatt_paper"):
        rows = read_tsv(made / f"{name}.tsv")
        assert rows and all(row[key] == "" for row in rows for key in row if "ours" in key)
    made = report(exp, "--mustc", "true")
    rows = read_tsv(made / "streamatt_paper.tsv")
    shown = [tuple(row.values()) for row in rows if row["BLEU ours"]]
    assert (made / "figure_longform.png").stat().st_size > 10_000
    assert shown == [
        ("4", "de", "n_words 10", "4", "23.8", "23.0", "2450", "2400", "3820", "2500"),
        ("4", "de", "n_words 20", "4", "23.5", "22.0", "1960", "1900", "3280", "2000"),
        ("6", "de", "baseline", "4", "17.8", "15.0", "3090", "3000", "5030", "3100"),
        ("6", "de", "StreamAtt, fixed words", "4", "23.0", "22.0", "1810", "1900", "3230", "2000"),
        ("6", "de", "StreamAtt, punctuation", "4", "22.5", "21.0", "1870", "2000", "3740", "2100"),
    ]
    rows = read_tsv(made / "ibwbs_paper.tsv")
    assert [(row["table"], row["paper"], row["ours"]) for row in rows if row["language"] == "de"] == [
        ("1", "0.6 to 0.7", "1.6"),
        ("2", "0.6", "-0.2"),
        ("2", "-959", "-900"),
        ("3", "6.2", "6.0"),
        ("3", "about -20", "-20.0"),
        ("4", "no change", "-0.1"),
        ("4", "no change", "-20"),
        ("4", "-20 to -30", "-25.0"),
    ]
    assert all(row["ours"] == "" for row in rows if row["language"] == "fr")
