"""Names of `azure.identity` where that is not installed: words that a client is given, and that open nothing."""
from __future__ import annotations

from typing import Any, NoReturn


class DefaultAzureCredential:
    """Who one is at the Azure service: MLClient takes it here, and asks for nothing by it."""

    def __init__(self, **_: Any) -> None:
        pass

    def get_token(self, *_: str, **__: Any) -> NoReturn:
        """Raises RuntimeError: there is nobody here who would give a token."""
        raise RuntimeError("azure.identity is not installed, and Troupe, which stands in for it, has no tokens of Azure: jobs here need none; "
                           "for other services of Azure, pip install azure-identity")


class AzureCliCredential(DefaultAzureCredential):
    """As above."""


class DeviceCodeCredential(DefaultAzureCredential):
    """As above."""


class EnvironmentCredential(DefaultAzureCredential):
    """As above."""


class InteractiveBrowserCredential(DefaultAzureCredential):
    """As above."""


class ManagedIdentityCredential(DefaultAzureCredential):
    """As above."""
