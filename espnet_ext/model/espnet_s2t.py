"""ESPnet's S2T models (OWSM): one model of many languages and tasks, told by its first tokens what to do."""

import re

import torch
from espnet2.s2t.espnet_model import ESPnetS2TModel

from espnet_ext.audio.reader import SAMPLE_RATE
from espnet_ext.errors import UserError
from espnet_ext.model.espnet_st import SpeechTranslationModel
from espnet_ext.model.languages import find_language
from espnet_ext.model.vocabulary import Vocabulary

SYMBOL = re.compile(r"<.+>")  # ESPnet's rule for tokens that are no text
LANGUAGE = re.compile(r"<([a-z]{2,3})>")
TRANSLATION = re.compile(r"<st_([a-z]{2,3})>")
NO_LANGUAGES = {"na", "unk", "sos", "eos", "sop", "asr", "pr"}


class SpeechToTextModel(SpeechTranslationModel):
    """An S2T model, translating without timestamps: the decoder begins with `<sos> <eng> <st_deu> <notimestamps>`.

    It is trained on windows of one length (30 s), shorter audio padded with silence. The offline search pads too and
    gives ESPnet's result; simultaneous searches encode the audio with `silence_s` of silence after it, as for Whisper.
    """

    silence_s = 2.0

    def __init__(self, model: ESPnetS2TModel, vocabulary: Vocabulary, config: dict, **options: object) -> None:
        for module in model.modules():
            if hasattr(module, "use_flash_attn"):
                module.use_flash_attn = False  # as in ESPnet's inference: it is for half precision
        super().__init__(model, vocabulary, config, **options)
        symbols = config["preprocessor_conf"]
        if symbols["fs"] != SAMPLE_RATE:
            raise UserError(f"preprocessor_conf: fs: {symbols['fs']} Hz; only models of {SAMPLE_RATE} Hz can be used")
        self.max_audio_s = float(symbols["speech_length"])
        self.after_audio = self._after_audio()
        ids = {token: index for index, token in enumerate(vocabulary.token_list)}
        self.no_timestamps = ids[symbols["notime_symbol"]]
        self.suppressed = range(ids[symbols["first_time_symbol"]], ids[symbols["last_time_symbol"]] + 1)
        self.sources = _coded(ids, LANGUAGE)
        self.targets = _coded(ids, TRANSLATION)

    @torch.inference_mode()
    def _after_audio(self) -> dict[str, object]:
        """What the encoder takes after audio that is shorter than the window, and the window in feature frames."""
        frontend = self.frontend()
        count = round(self.silence_s * SAMPLE_RATE)
        features = frontend.push(torch.zeros(count + frontend.n_fft), final=True)
        silence = features[: count // frontend.hop]
        return {"silence": silence, "most": round(self.max_audio_s * SAMPLE_RATE) // frontend.hop + 1}

    def start(self, src_lang: str, tgt_lang: str) -> tuple[int, ...]:
        """`<sos>`, the language that is spoken, the translation task of the target, `<notimestamps>`.

        Raises UserError, listing what there is, for a language that the model does not have.
        """
        source = find_language(self.sources, src_lang, "src_lang")
        return self.sos, source, find_language(self.targets, tgt_lang, "tgt_lang"), self.no_timestamps

    @property
    def has_ctc(self) -> bool:
        """Whether the model was trained with CTC, which in OWSM knows the transcript, not the translation."""
        return self.module.ctc is not None

    def _ctc(self, option: str) -> torch.nn.Module:
        if not self.has_ctc:
            raise UserError(f"{option}: the model was trained without CTC")
        return self.module.ctc


def symbols(token_list: list[str]) -> frozenset[int]:
    """Ids of the tokens that are no text: languages, tasks, timestamps, ESPnet's own."""
    return frozenset(index for index, token in enumerate(token_list) if SYMBOL.fullmatch(token))


def _coded(ids: dict[str, int], pattern: re.Pattern) -> dict[str, int]:
    """Language code -> token id, of the tokens that fit the pattern."""
    found = {match[1]: index for token, index in ids.items() if (match := pattern.fullmatch(token))}
    return {code: index for code, index in found.items() if code not in NO_LANGUAGES}
