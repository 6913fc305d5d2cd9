"""The README.md of a packed model: what it is, what it scores and what produced the scores, how it is used."""

from pathlib import Path

from huggingface_hub import ModelCardData

from espnet_ext.bin.report_simul import provenance
from espnet_ext.errors import UserError
from espnet_ext.evaluation.results import Decode

GEOMETRY = ("block_size", "hop_size", "look_ahead")
COLUMNS = {
    "BLEU": "BLEU",
    "chrF": "chrF",
    "LAAL": "LAAL (ms)",
    "AL": "AL (ms)",
    "StreamLAAL": "StreamLAAL (ms)",
    "words_at_end": "words at the source end (%)",
}
TEXT = """---
{metadata}
---

# {name}

Simultaneous speech translation from `{source}` to `{target}`: an ESPnet ST model, the mean of several epochs of a
training on {corpus}. Encoder: {encoder}.

## Use

```python
from espnet_ext import SimulSession, load_model

session = SimulSession(load_model("{archive}"), search="ibwbs", policy="hold_n", hold_n=6, tgt_lang="{target}")
for samples in microphone:  # float32, mono, 16 kHz, any length
    print(session.push(samples).text)
print(session.finish().text)
```

```bash
python -m espnet_ext.bin.st_inference_simul --model {archive} --search ibwbs --policy hold_n --hold_n 6 \\
    --tgt_lang {target} --data_path_and_name_and_type wav.scp,speech,sound --output_dir decode
```

The directory that the archive unpacks to is named in the same ways; its `conf/decode/` holds the options of every row
below, for `--config`. ESPnet's own decoding:

```python
from espnet2.bin.st_inference import Speech2Text

speech2text = Speech2Text.from_pretrained("{archive}")
```

## Scores

{table}

{provenance}
"""


def score_table(decodes: list[Decode]) -> str:
    """A markdown table, a row a decode."""
    rows = [["system", "set", *COLUMNS.values()], ["---", "---", *["---:"] * len(COLUMNS)]]
    for decode in decodes:
        rows.append([f"`{decode.system}`", decode.set, *(_cell(column, decode.get(column)) for column in COLUMNS)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cell(column: str, value: float | None) -> str:
    if value is None:
        return ""
    if column in ("BLEU", "chrF"):
        return f"{value:.1f}"
    return f"{100 * value:.0f}" if column == "words_at_end" else f"{value:.0f}"


def languages(model_dir: Path) -> tuple[str, str]:
    """Source and target language of `NAME.SRC-TGT`. Raises UserError for another name."""
    source, dash, target = model_dir.name.rpartition(".")[2].partition("-")
    if not (source and dash and target):
        raise UserError(f"{model_dir}: its name must end in .SRC-TGT, for example st_block40.en-de")
    return source, target


def write_card(model_dir: Path, archive: str, decodes: list[Decode], config: dict, corpus: str) -> str:
    """The card's text.

    Args:
        archive: file name of the packed model.
        decodes: the model's scored decodes.
        config: its training config.
        corpus: what it was trained on.
    """
    source, target = languages(model_dir)
    tags = ["espnet", "audio", "speech-translation", "simultaneous-translation"]
    metadata = ModelCardData(language=[source, target], library_name="espnet", tags=tags)
    geometry = [f"{key} {config['encoder_conf'][key]}" for key in GEOMETRY if key in config["encoder_conf"]]
    return TEXT.format(
        metadata=metadata.to_yaml(),
        name=model_dir.name,
        source=source,
        target=target,
        corpus=corpus,
        encoder=", ".join([config["encoder"], *geometry]),
        archive=archive,
        table=score_table(decodes),
        provenance="\n".join(provenance(decodes)),
    )
