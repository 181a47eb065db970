"""`@dsl.pipeline`: a pipeline as a Python function describes it."""

from troupe.azure._pipeline.dsl import pipeline

__all__ = ["pipeline"]
