"""Encoders on a stream: features in, encoder memory out, released as the model releases it."""

import torch
from espnet2.asr.encoder.contextual_block_conformer_encoder import ContextualBlockConformerEncoder
from espnet2.asr.encoder.contextual_block_transformer_encoder import ContextualBlockTransformerEncoder

BLOCK_ENCODERS = (ContextualBlockTransformerEncoder, ContextualBlockConformerEncoder)

# Below this many feature frames two strided convolutions of kernel 3 have no output, and ESPnet's encoder raises.
MIN_FEATURES = 7


class BlockEncoder:
    """ESPnet's contextual block encoder fed feature by feature. Its geometry comes from the trained module itself."""

    def __init__(self, encoder: torch.nn.Module) -> None:
        self.encoder = encoder
        self.reset()

    def reset(self) -> None:
        """Forget the utterance; positions start again at 0."""
        self.states: dict | None = None
        self.seen = 0
        self.memory = torch.zeros(0, self.encoder.output_size())

    @torch.inference_mode()
    def push(self, features: torch.Tensor, final: bool = False) -> torch.Tensor:
        """Take feature frames `(T, D)` and return all memory frames `(T', D')` released so far.

        `final` releases the rest. Fewer than seven feature frames in all have no memory.
        """
        self.seen += len(features)
        if final and self.seen < MIN_FEATURES:
            return self.memory
        if len(features) or final:
            lengths = torch.tensor([len(features)])
            new, _, self.states = self.encoder(
                features.unsqueeze(0), lengths, self.states, is_final=final, infer_mode=True
            )
            if new.size(1):
                self.memory = torch.cat([self.memory.to(new), new[0]])
        return self.memory
