"""Import this before anything of ESPnet, whose attention prints a line about the optional flash_attn at its import."""

import contextlib
import io

with contextlib.redirect_stderr(io.StringIO()):
    import espnet2.legacy.nets.pytorch_backend.transformer.attention  # noqa: F401
