"""Tiny random Whisper models, written to disk in transformers' own format."""

import re
from pathlib import Path

import torch
from tokenizers import ByteLevelBPETokenizer
from transformers import (
    GenerationConfig,
    WhisperConfig,
    WhisperFeatureExtractor,
    WhisperForConditionalGeneration,
    WhisperTokenizer,
)

TEXT = ["a small house stands by the river", "she will buy three books tomorrow, naïve or not"]
LANGUAGES = ("en", "de", "fr")
SECONDS = 4  # of a window; Whisper's are 30 s


def write_whisper(
    directory: Path, seed: int = 0, seconds=SECONDS, languages=LANGUAGES, generation=None, **changes
) -> Path:
    """Write model, feature extractor and tokenizer; `seconds` are of a window, `changes` of the model's config."""
    pieces = ByteLevelBPETokenizer()
    pieces.train_from_iterator(TEXT, vocab_size=300, show_progress=False)
    pieces.save_model(str(directory))
    tokenizer = WhisperTokenizer.from_pretrained(directory, errors="replace")
    special = ["<|startoftranscript|>", *(f"<|{code}|>" for code in languages)]
    special += ["<|translate|>", "<|transcribe|>", "<|notimestamps|>"]
    tokenizer.add_special_tokens({"additional_special_tokens": special})
    tokenizer.save_pretrained(directory)
    ids = tokenizer.get_vocab()
    eos = ids["<|endoftext|>"]
    written = re.compile("Ġ[a-z]+|[a-z]{2,}")  # the rest is never put out, so that texts have words
    suppressed = sorted(index for token, index in ids.items() if not written.fullmatch(token) and index != eos)
    WhisperFeatureExtractor(feature_size=20, chunk_length=seconds).save_pretrained(directory)
    config = WhisperConfig(
        **dict(
            vocab_size=len(tokenizer) + 3,  # as in the released models there are more rows than tokens
            num_mel_bins=20,
            d_model=32,
            encoder_layers=2,
            decoder_layers=3,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            encoder_ffn_dim=48,
            decoder_ffn_dim=48,
            max_source_positions=seconds * 50,
            max_target_positions=80,
            decoder_start_token_id=ids["<|startoftranscript|>"],
            bos_token_id=eos,
            eos_token_id=eos,
            pad_token_id=eos,
            suppress_tokens=None,
            begin_suppress_tokens=None,
        )
        | changes
    )
    torch.manual_seed(seed)
    model = WhisperForConditionalGeneration(config).eval()
    with torch.no_grad():
        # Sharper than the initialisation, so that searches differ; what was fed last does not echo.
        model.model.decoder.embed_tokens.weight.normal_(std=0.3)
        model.model.decoder.embed_positions.weight.normal_(std=0.3)
        for module in model.model.modules():
            if isinstance(module, torch.nn.Linear | torch.nn.Conv1d):
                module.weight.normal_(std=0.3)
        for layer in model.model.decoder.layers:
            layer.encoder_attn.q_proj.weight.mul_(2)
            layer.encoder_attn.out_proj.weight.mul_(2)
    model.generation_config = GenerationConfig(
        **dict(
            decoder_start_token_id=config.decoder_start_token_id,
            eos_token_id=eos,
            pad_token_id=eos,
            is_multilingual=True,
            lang_to_id={f"<|{code}|>": ids[f"<|{code}|>"] for code in languages},
            task_to_id={task: ids[f"<|{task}|>"] for task in ("translate", "transcribe")},
            no_timestamps_token_id=ids["<|notimestamps|>"],
            alignment_heads=[[1, 0], [2, 1], [2, 3]],
            suppress_tokens=[*suppressed, *range(len(tokenizer), config.vocab_size)],
            begin_suppress_tokens=[ids["Ġt"], eos],
            max_length=config.max_target_positions,
            return_timestamps=False,
        )
        | (generation or {})
    )
    model.save_pretrained(directory)
    return directory
