"""Searches over a growing encoder memory, and the presets by name."""

from espnet_ext.search.beam_step import BeamStep
from espnet_ext.search.bwbs import BlockwiseBeamSearch
from espnet_ext.search.hypothesis import Candidate, Hypothesis
from espnet_ext.search.ibwbs import IncrementalBlockwiseBeamSearch
from espnet_ext.search.standard import StandardBeamSearch

__all__ = [
    "BeamStep",
    "BlockwiseBeamSearch",
    "Candidate",
    "Hypothesis",
    "IncrementalBlockwiseBeamSearch",
    "StandardBeamSearch",
]
