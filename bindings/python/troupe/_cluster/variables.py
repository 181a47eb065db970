"""The rule for which of a program's variables travel to processes it starts, on a cluster and on an
embedded one.

What the program has set or changed since its start travels, and so does what begins with one of
`PREFIXES`, set by whomever; never what is of the machine, of the runtime or of one process
(`NEVER`). What the program has removed is removed there. The start is what the kernel keeps of it
(/proc/self/environ); of a process of the runtime it is what its worker has given it, and of that
what has travelled to it travels on.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

PREFIXES = (
    "ACCELERATE_",
    "ANTHROPIC_",
    "AWS_",
    "AZURE_",
    "BITSANDBYTES_",
    "CLEARML_",
    "CLOUDSDK_",
    "COMET_",
    "CUBLAS_",
    "CUDA_",
    "CUDNN_",
    "DATABRICKS_",
    "DATASETS_",
    "DEEPSPEED_",
    "DIFFUSERS_",
    "DS_",
    "FI_",
    "FLASH_ATTENTION_",
    "FSDP_",
    "FSSPEC_",
    "GCLOUD_",
    "GCS_",
    "GLOO_",
    "GOMP_",
    "GOOGLE_",
    "HF_",
    "HUGGINGFACE_",
    "HUGGING_FACE_",
    "JAX_",
    "KERAS_",
    "KMP_",
    "LIGHTNING_",
    "MKL_",
    "MLFLOW_",
    "NCCL_",
    "NEPTUNE_",
    "NUMEXPR_",
    "NVTE_",
    "OMP_",
    "OPENAI_",
    "OPENBLAS_",
    "OTEL_",
    "PL_",
    "PYTORCH_",
    "S3_",
    "SAFETENSORS_",
    "SENTENCE_TRANSFORMERS_",
    "TENSORBOARD_",
    "TF_",
    "TOKENIZERS_",
    "TORCHINDUCTOR_",
    "TORCH_",
    "TRANSFORMERS_",
    "TRITON_",
    "UCX_",
    "VLLM_",
    "WANDB_",
    "XLA_",
)
"""Of libraries that people steer by variables, credentials among them."""

RESULTS = (
    "ACCELERATE_",
    "BITSANDBYTES_",
    "CUBLAS_",
    "CUDNN_",
    "DEEPSPEED_",
    "FLASH_ATTENTION_",
    "FSDP_",
    "JAX_",
    "KMP_DETERMINISTIC",
    "MKL_",
    "NCCL_",
    "NVTE_",
    "OMP_",
    "PYTORCH_",
    "TF_CUDNN_",
    "TF_DETERMINISTIC",
    "TF_ENABLE_ONEDNN",
    "TF_XLA_",
    "TORCHINDUCTOR_",
    "TORCH_",
    "TRITON_",
    "XLA_",
)
"""Prefixes of variables that can change what a program computes: of libraries among `PREFIXES`."""

NEVER = (
    # The runtime's own, and what says which process of a launch this is, by whichever launcher.
    "TROUPE_*",
    "RANK",
    "LOCAL_RANK",
    "NODE_RANK",
    "GROUP_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_WORLD_SIZE",
    "ROLE_RANK",
    "ROLE_WORLD_SIZE",
    "ROLE_NAME",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_*",
    "SLURM_*",
    "SLURMD_*",
    "SRUN_*",
    "OMPI_*",
    "PMI_*",
    "PMIX_*",
    "MPI_*",
    "MV2_*",
    "HYDRA_*",
    "LWS_*",
    "HOROVOD_*",
    "JSM_*",
    "FLUX_*",
    "TF_CONFIG",
    "RAY_ADDRESS",
    "RAY_JOB_*",
    # Devices that this process sees.
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    # Paths on this machine, and its logged-in user.
    "PATH",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LIBRARY_PATH",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "DYLD_*",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONEXECUTABLE",
    "PKG_CONFIG_PATH",
    "MANPATH",
    "INFOPATH",
    "CLASSPATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "HOME",
    "PWD",
    "OLDPWD",
    "TMPDIR",
    "SHELL",
    "SHLVL",
    "USER",
    "LOGNAME",
    "MAIL",
    "HOSTNAME",
    "TERM",
    "TERM_*",
    "COLORTERM",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XDG_*",
    "XAUTHORITY",
    "DBUS_*",
    "SSH_*",
    "GPG_*",
    "VIRTUAL_ENV",
    "VIRTUAL_ENV_PROMPT",
    "CONDA_*",
    "LS_COLORS",
    "LESS*",
    "PS1",
    "PAGER",
    "EDITOR",
    "COLUMNS",
    "LINES",
    "NOTIFY_SOCKET",
    "WATCHDOG_*",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "JPY_*",
    "_",
)

ONE_LAUNCH = "TROUPE_ONE_LAUNCH"
"""Set for a cluster that is started for one launch and ends with it: what its processes might need
later is not prepared."""

UNDER_WORKERS = "TROUPE_UNDER_WORKERS"
"""Which workers a process is below, by the ids that they were started with, the nearest last: by it
is found what outlives a worker that was killed (`_process.survivors`). All that a worker's
processes start inherits it."""

began_with: dict[str, str] | None = None
"""Of a process of the runtime: its environment when it began."""
carried: frozenset[str] = frozenset()
"""Of such a process: the names of what has travelled to it."""
missing: tuple[str, ...] = ()
"""And of what the program that started it has removed."""


def began(environment: Mapping[str, str], names: Iterable[str], removed: Iterable[str]) -> None:
    """This process of the runtime begins, with this environment, of which these names have
    travelled to it."""
    global began_with, carried, missing
    began_with, carried, missing = dict(environment), frozenset(names), tuple(removed)


@dataclass(frozen=True)
class Choice:
    """The variables of one request: those to send, those to remove there, and the names of those
    that stay here."""

    taken: dict[str, str]
    removed: tuple[str, ...]
    left: tuple[str, ...]


def choose(
    now: Mapping[str, str],
    start: Mapping[str, str],
    *,
    named: Iterable[str] = (),
    carried: frozenset[str] | None = None,
    missing: Iterable[str] = (),
) -> Choice:
    """The rule.

    `named`: patterns of what travels because it was asked for (`inherit_env`), PATH and the like
    among them, the runtime's own not. `carried`: None in a program of its own; in a process of the
    runtime what has travelled to it, and `missing` what was removed for it.

        >>> choose({"SEED": "1", "HF_HOME": "/h", "LANG": "C"}, {"HF_HOME": "/h", "LANG": "C"})
        Choice(taken={'SEED': '1', 'HF_HOME': '/h'}, removed=(), left=('LANG',))
    """
    patterns = tuple(named)
    taken, left = {}, []
    for name, value in now.items():
        if _of_runtime(name):
            continue
        asked = any(fnmatchcase(name, pattern) for pattern in patterns)
        changed = start.get(name) != value
        if asked or (not never(name) and (changed or _goes_along(name, carried))):
            taken[name] = value
        elif not never(name) or changed:
            left.append(name)
    removed = tuple(
        sorted(name for name in {*start, *missing} if name not in now and not never(name))
    )
    return Choice(taken, removed, tuple(sorted(left)))


def now() -> dict[str, str]:
    """Return this process's environment.

    `dict(os.environ)` raises KeyError where another thread removes a variable meanwhile.
    """
    found = ((name, os.environ.get(name)) for name in list(os.environ))
    return {name: value for name, value in found if value is not None}


def travelling(named: Iterable[str]) -> Choice:
    """Return the variables that travel from this process now, by the rule."""
    return choose(
        now(),
        at_start(),
        named=named,
        carried=None if began_with is None else carried,
        missing=missing,
    )


def exported_for_results(names: Iterable[str]) -> list[str]:
    """Return those that this process had when it began, and has as they were, of libraries whose
    variables can change what a program computes."""
    start, there = at_start(), now()
    return [
        name
        for name in names
        if name.startswith(RESULTS) and name in start and there.get(name) == start[name]
    ]


def _goes_along(name: str, carried: frozenset[str] | None) -> bool:
    return name.startswith(PREFIXES) if carried is None else name in carried


@functools.lru_cache(4096)
def never(name: str) -> bool:
    """Return True if the variable stays here, unless it is asked for by name."""
    return any(fnmatchcase(name, pattern) for pattern in NEVER)


def _of_runtime(name: str) -> bool:
    return name.startswith("TROUPE_")


_parsed: tuple[bytes, dict[str, str]] = (b"", {})


def at_start() -> dict[str, str]:
    """This process's environment when it began; read anew each time, and taken apart where it is
    another one."""
    global _parsed
    if began_with is not None:
        return began_with
    try:
        with open("/proc/self/environ", "rb") as file:
            raw = file.read()
    except OSError:  # a process that may not look at itself: nothing is known of its start
        return {}
    known, parsed = _parsed
    if raw != known:
        pairs = (each.partition(b"=") for each in raw.split(b"\0"))
        parsed = {
            os.fsdecode(name): os.fsdecode(value)
            for name, equals, value in pairs
            if equals and name
        }
        _parsed = raw, parsed
    return parsed


def under(worker: str, now: Mapping[str, str]) -> dict[str, str]:
    """For the environment of a worker with this id, started where `now` is the environment. Pure.

    >>> under("7f", {"TROUPE_UNDER_WORKERS": "5c"})
    {'TROUPE_UNDER_WORKERS': '5c,7f'}
    """
    return {UNDER_WORKERS: ",".join([*filter(None, [now.get(UNDER_WORKERS)]), worker])}


def of_a_node() -> dict[str, str]:
    """The environment for a node that this program starts for itself: that of its own start, so
    that what it sets travels by the rule as to any other node; with what never travels as it is
    now."""
    return {
        **{name: value for name, value in at_start().items() if not never(name)},
        **{name: value for name, value in now().items() if never(name)},
    }
