"""Ray's `ray.runtime_env`: a runtime_env that is checked when it is made.

from troupe.runtime_env import RuntimeEnv
@troupe.remote(runtime_env=RuntimeEnv(env_vars={"MODE": "eval"}))
"""

from __future__ import annotations

from typing import Any

from troupe._code import runtime_env


class RuntimeEnv(dict[str, Any]):
    """A dict of `env_vars`, `working_dir`, `py_modules`, `excludes`, `pip`, `uv`, `config`,
    `worker_process_setup_hook`, to be given as any runtime_env.

    Process view; reads the files that it names, and starts nothing. Raises ValueError or TypeError
    naming the key at fault.
    """

    def __init__(self, **fields: Any) -> None:
        super().__init__(runtime_env.check(fields))

    def to_dict(self) -> dict[str, Any]:
        """A plain dict."""
        return dict(self)


class RuntimeEnvConfig(dict[str, Any]):
    """The value of `config` in a runtime_env: `setup_timeout_seconds` (-1: no limit);
    `eager_install` has no effect. Raises ValueError for impossible values."""

    def __init__(
        self, setup_timeout_seconds: int = 600, eager_install: bool = True, log_files: Any = None
    ) -> None:
        super().__init__(
            runtime_env.check(
                {
                    "config": {
                        "setup_timeout_seconds": setup_timeout_seconds,
                        "eager_install": eager_install,
                    }
                }
            )["config"]
        )


__all__ = ["RuntimeEnv", "RuntimeEnvConfig"]
