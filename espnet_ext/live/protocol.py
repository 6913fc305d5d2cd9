"""What goes over the socket: simulstream's protocol, and ours beside it for clients that ask for it.

A client sends 16-bit mono PCM in binary messages and JSON objects in text messages. It is sent JSON objects.
"""

import dataclasses
import json
from dataclasses import dataclass

import numpy as np

from espnet_ext.errors import UserError
from espnet_ext.session import Update

RATES = (8000, 192000)


@dataclass(frozen=True)
class Control:
    """A text message; `extended`, `tune`, `pauses` and `flush` are ours, the other keys simulstream's."""

    sample_rate: int | None = None
    target_lang: str | None = None
    source_lang: str | None = None
    metrics_metadata: dict | None = None
    end_of_stream: bool = False
    extended: bool = False
    tune: dict | None = None
    pauses: bool | None = None
    flush: bool = False


KEYS = {option.name: getattr(option.type, "__args__", (option.type,))[0] for option in dataclasses.fields(Control)}


def parse_control(text: str) -> Control:
    """A text message. Raises UserError for what is not a JSON object of known keys with values of their types."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"message: not JSON: {error}") from None
    if not isinstance(values, dict):
        raise UserError(f"message: a JSON object is needed, not {shorten(values)}")
    for key, value in values.items():
        if key not in KEYS:
            raise UserError(f"message: unknown key {shorten(key)}; known: {', '.join(KEYS)}")
        if type(value) is not KEYS[key]:
            raise UserError(f"{key}: expected {KEYS[key].__name__}, got {shorten(value)}")
    control = Control(**values)
    if control.sample_rate is not None and not RATES[0] <= control.sample_rate <= RATES[1]:
        raise UserError(f"sample_rate: must lie in {RATES[0]} to {RATES[1]} Hz, not {control.sample_rate}")
    return control


def parse_audio(data: bytes) -> np.ndarray:
    """Samples `(N,)`, float32, of a binary message. Raises UserError for half a sample."""
    if len(data) % 2:
        raise UserError(f"audio: {len(data)} bytes; 16-bit samples are needed, two bytes each")
    return np.frombuffer(data, dtype="<i2").astype(np.float32) / 2**15


def update_message(update: Update, text: str, extended: bool, lag_ms: float) -> dict[str, object]:
    """What a step released: `text` is that of `update` with the blank that parts it from the text before.

    `lag_ms` is the time from the arrival of the audio to now.
    """
    message: dict[str, object] = {"new": text, "deleted": ""}
    if extended:
        words = zip(update.units, update.delays, strict=True)
        message |= {
            "unstable": update.unstable,
            "words": [{"text": unit, "delay_ms": round(delay, 1)} for unit, delay in words],
            "audio_ms": round(update.delay_ms, 1),
            "lag_ms": round(lag_ms, 1),
        }
    return message


def readable(error: str) -> str:
    """An error as it is sent and logged: one line that is not long, whatever it quotes of a client."""
    text = "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in error[:300])
    return text if len(error) <= 300 else f"{text}..."


def shorten(value: object) -> str:
    """A value of a client as it is shown and logged, in one line."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
