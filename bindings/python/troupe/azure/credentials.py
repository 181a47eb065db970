"""Names of `azure.identity` where that is not installed: words that a client is given, and that
open nothing."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from troupe._code import field_checks

_OF_REQUESTS = (
    "authority",
    "transport",
    "policies",
    "per_call_policies",
    "per_retry_policies",
    "proxies",
    "logging_enable",
    "logging_body",
    "headers",
    "user_agent",
    "user_agent_overwrite",
    "connection_timeout",
    "read_timeout",
    "connection_verify",
    "connection_cert",
    "connection_data_block_size",
    "retry_total",
    "retry_connect",
    "retry_read",
    "retry_status",
    "retry_backoff_factor",
    "retry_backoff_max",
    "retry_mode",
    "retry_on_status_codes",
    "timeout",
)
_OF_TENANTS = ("tenant_id", "additionally_allowed_tenants", "disable_instance_discovery")
_OF_USERS = (
    "client_id",
    "authentication_record",
    "disable_automatic_authentication",
    "cache_persistence_options",
    "enable_support_logging",
)
_SOURCES = (
    "workload_identity",
    "developer_cli",
    "cli",
    "environment",
    "managed_identity",
    "powershell",
    "visual_studio_code",
    "shared_token_cache",
    "interactive_browser",
    "broker",
)


class DefaultAzureCredential:
    """A credential for the Azure service: MLClient accepts it here, and does not use it.

    The keywords are those of azure.identity's class of this name. Raises TypeError for any other,
    naming the nearest.
    """

    _keywords: ClassVar[tuple[str, ...]] = (
        *(f"exclude_{each}_credential" for each in _SOURCES),
        "interactive_browser_tenant_id",
        "interactive_browser_client_id",
        "broker_tenant_id",
        "broker_client_id",
        "managed_identity_client_id",
        "workload_identity_client_id",
        "workload_identity_tenant_id",
        "shared_cache_username",
        "shared_cache_tenant_id",
        "visual_studio_code_tenant_id",
        "process_timeout",
        "require_envvar",
        *_OF_TENANTS,
    )
    _positional: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *positional: Any, **keywords: Any) -> None:
        name = type(self).__name__
        if len(positional) > len(self._positional):
            raise TypeError(
                f"{name}() takes {len(self._positional)} positional arguments, and "
                f"{len(positional)} were given"
            )
        known = (*self._positional, *self._keywords, *_OF_REQUESTS)
        for each in keywords:
            if each not in known:
                raise TypeError(f"{name}() has no {each}={field_checks.or_nearest(each, known)}")

    def get_token(
        self,
        *scopes: str,
        claims: str | None = None,
        tenant_id: str | None = None,
        enable_cae: bool = False,
    ) -> NoReturn:
        """Raises RuntimeError: there is nobody here who would give a token."""
        raise RuntimeError(
            "azure.identity is not installed, and Troupe, which stands in for it, has no tokens of "
            "Azure: jobs here need none; "
            "for other services of Azure, pip install azure-identity"
        )


class AzureCliCredential(DefaultAzureCredential):
    """As DefaultAzureCredential, for the login of `az`."""

    _keywords = ("tenant_id", "subscription", "additionally_allowed_tenants", "process_timeout")


class DeviceCodeCredential(DefaultAzureCredential):
    """As DefaultAzureCredential, for a login by a code."""

    _keywords = (*_OF_TENANTS, *_OF_USERS, "prompt_callback")
    _positional = ("client_id",)


class EnvironmentCredential(DefaultAzureCredential):
    """As DefaultAzureCredential, for what variables say."""

    _keywords = _OF_TENANTS


class InteractiveBrowserCredential(DefaultAzureCredential):
    """As DefaultAzureCredential, for a login in a browser."""

    _keywords = (*_OF_TENANTS, *_OF_USERS, "login_hint", "redirect_uri")


class ManagedIdentityCredential(DefaultAzureCredential):
    """As DefaultAzureCredential, for the identity of a machine."""

    _keywords = ("client_id", "identity_config", *_OF_TENANTS)
