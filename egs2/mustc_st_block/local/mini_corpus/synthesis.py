"""Speech from the eSpeak NG library of the `espeakng-loader` package, the same samples for the same text every time."""

import _ctypes
import ctypes
import re
from dataclasses import dataclass

import espeakng_loader
import numpy as np
import soxr

SAMPLE_RATE = 16000
ESPEAK_RATE = 22050
# of eSpeak NG's speak_lib.h
AUDIO_OUTPUT_SYNCHRONOUS = 2
PARAMETER_RATE = 1
CHARS_UTF8 = 1
SYNTH_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)


@dataclass(frozen=True)
class Voice:
    """An eSpeak NG voice and its rate in words per minute."""

    name: str
    words_per_minute: int


def spoken(text: str) -> str:
    """The text as the synthesiser shall read it: years in two halves (1998 as 19 98)."""
    return re.sub(r"\b(19|20)(\d\d)\b", r"\1 \2", text)


def synthesise(text: str, voice: Voice) -> np.ndarray:
    """float32 samples in [-1, 1] at 16 kHz, silence at both ends cut off.

    The library keeps state from one utterance to the next (breath noise, pitch), so it is loaded anew for each.
    """
    library = ctypes.CDLL(espeakng_loader.get_library_path())
    try:
        pcm = _speak(library, spoken(text), voice)
    finally:
        _ctypes.dlclose(library._handle)
    return soxr.resample(_trim(pcm.astype(np.float32) / 32768), ESPEAK_RATE, SAMPLE_RATE)


def _speak(library: ctypes.CDLL, text: str, voice: Voice) -> np.ndarray:
    """int16 samples at 22.05 kHz."""
    # without argtypes ctypes would cut 64-bit pointers
    library.espeak_Initialize.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_int]
    library.espeak_ng_SetRandSeed.argtypes = [ctypes.c_long]
    library.espeak_SetSynthCallback.argtypes = [SYNTH_CALLBACK]
    library.espeak_SetVoiceByName.argtypes = [ctypes.c_char_p]
    library.espeak_SetParameter.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int]
    library.espeak_Synth.argtypes = [
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_uint,
        ctypes.c_int,
        ctypes.c_uint,
        ctypes.c_uint,
        ctypes.c_void_p,
        ctypes.c_void_p,
    ]
    data = espeakng_loader.get_data_path().encode()
    rate = library.espeak_Initialize(AUDIO_OUTPUT_SYNCHRONOUS, 0, data, 0)
    if rate != ESPEAK_RATE:
        raise RuntimeError(f"eSpeak NG did not start: espeak_Initialize returned {rate}, {ESPEAK_RATE} is expected")
    library.espeak_ng_SetRandSeed(1)
    pieces: list[bytes] = []

    @SYNTH_CALLBACK
    def collect(wav: object, count: int, events: object) -> int:
        if wav and count > 0:
            pieces.append(ctypes.string_at(wav, 2 * count))
        return 0

    library.espeak_SetSynthCallback(collect)
    encoded = text.encode()
    for code in (
        library.espeak_SetVoiceByName(voice.name.encode()),
        library.espeak_SetParameter(PARAMETER_RATE, voice.words_per_minute, 0),
        library.espeak_Synth(encoded, len(encoded) + 1, 0, 0, 0, CHARS_UTF8, None, None),
        library.espeak_Synchronize(),
    ):
        if code != 0:
            raise RuntimeError(f"eSpeak NG error {code} with voice {voice.name!r} and text {text!r}")
    library.espeak_Terminate()
    return np.frombuffer(b"".join(pieces), np.int16)


def _trim(samples: np.ndarray) -> np.ndarray:
    """The part from 20 ms before the first to 20 ms after the last sample above 1 % of the peak."""
    loud = np.flatnonzero(np.abs(samples) > 0.01 * np.abs(samples).max())
    margin = ESPEAK_RATE // 50
    return samples[max(loud[0] - margin, 0) : loud[-1] + margin]


def applause(seconds: float, rng: np.random.Generator) -> np.ndarray:
    """Noise that swells and dies away, roughened as by many hands."""
    count = int(seconds * SAMPLE_RATE)
    claps = np.repeat(rng.gamma(1.0, 1.0, count // 80 + 1).clip(max=3), 80)[:count]
    envelope = np.sin(np.linspace(0, np.pi, count)) ** 0.5
    return (_coloured(count, rng) * claps * envelope * 0.1).astype(np.float32)


def laughter(seconds: float, rng: np.random.Generator) -> np.ndarray:
    """Noise in about five bursts a second, dying away."""
    count = int(seconds * SAMPLE_RATE)
    time = np.arange(count) / SAMPLE_RATE
    bursts = np.clip(np.sin(2 * np.pi * rng.uniform(4.5, 5.5) * time), 0, None) ** 2
    tone = np.sin(2 * np.pi * rng.uniform(250, 400) * time)
    return ((_coloured(count, rng) + tone) * bursts * np.linspace(1, 0.2, count) * 0.12).astype(np.float32)


def _coloured(count: int, rng: np.random.Generator) -> np.ndarray:
    white = rng.standard_normal(count + 1)
    return np.clip(0.7 * (white[1:] + 0.6 * white[:-1]), -2.5, 2.5)
