"""`distributed`, by the name of its module."""

from troupe.serverless_gpu._decorators import ServerlessFunction, distributed

__all__ = ["ServerlessFunction", "distributed"]
