"""Samples of a node: its CPUs, memory, network and GPUs, read where it runs."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator
from pathlib import Path

from troupe import _pickled

_MIB = float(1 << 20)
_PROC = Path("/proc")


class NodeSampler:
    """Samples of the node that this object is on, by MLflow's names of system metrics.

    Of rates, since the sample before.

    An actor of a monitor, or an object of its thread; one thread at a time.
    """

    def __init__(self) -> None:
        self._busy = self._all = 0
        self._bytes = (0, 0)
        self._at = 0.0
        self._gpus = _Nvml()
        self.sample()  # the first reading after it counts from here

    def sample(self) -> dict[str, float]:
        """Value by name. Does not wait; what cannot be read here is left out."""
        found: dict[str, float] = {}
        for read in (self._cpu, self._memory, self._network):
            try:
                found.update(read())
            except (OSError, ValueError, LookupError):
                continue
        found.update(self._gpus.sample())
        return found

    def _cpu(self) -> Iterator[tuple[str, float]]:
        times = [int(each) for each in (_PROC / "stat").read_text().partition("\n")[0].split()[1:9]]
        busy, all_ = (
            sum(times) - times[3] - times[4],
            sum(times),
        )  # without idle, and waiting for disks
        if all_ > self._all > 0:
            yield "cpu_utilization_percentage", 100 * (busy - self._busy) / (all_ - self._all)
        self._busy, self._all = busy, all_

    def _memory(self) -> Iterator[tuple[str, float]]:
        lines = dict(line.split(":") for line in (_PROC / "meminfo").read_text().splitlines())
        total, free = (int(lines[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))
        yield "system_memory_usage_megabytes", (total - free) / _MIB
        yield "system_memory_usage_percentage", 100 * (total - free) / total

    def _network(self) -> Iterator[tuple[str, float]]:
        received = sent = 0
        for line in (_PROC / "net/dev").read_text().splitlines()[2:]:
            name, _, numbers = line.partition(":")
            if name.strip() != "lo":
                received, sent = received + int(numbers.split()[0]), sent + int(numbers.split()[8])
        now = time.monotonic()
        if self._at and now > self._at:
            for name, before, after in (
                ("receive", self._bytes[0], received),
                ("transmit", self._bytes[1], sent),
            ):
                yield (
                    f"network_{name}_megabytes_per_second",
                    max(0, after - before) / _MIB / (now - self._at),
                )
        self._at, self._bytes = now, (received, sent)


_pickled.named_in("troupe._pickled", NodeSampler)


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    ]


class _Nvml:
    """NVIDIA's GPUs of the node, by the driver's own library; none where that is not there."""

    def __init__(self) -> None:
        self._library: ctypes.CDLL | None = None
        self._handles: list[ctypes.c_void_p] = []
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
            if library.nvmlInit_v2() != 0:
                return
        except (OSError, AttributeError):
            return
        count = ctypes.c_uint()
        library.nvmlDeviceGetCount_v2(ctypes.byref(count))
        for number in range(count.value):
            handle = ctypes.c_void_p()
            if library.nvmlDeviceGetHandleByIndex_v2(number, ctypes.byref(handle)) == 0:
                self._handles.append(handle)
        self._library = library

    def sample(self) -> dict[str, float]:
        """Value by name, of each GPU."""
        found: dict[str, float] = {}
        library = self._library
        if library is None:
            return found
        for number, handle in enumerate(self._handles):
            utilization, memory, milliwatts = _Utilization(), _Memory(), ctypes.c_uint()
            if library.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(utilization)) == 0:
                found[f"gpu_{number}_utilization_percentage"] = float(utilization.gpu)
            if library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) == 0 and memory.total:
                found[f"gpu_{number}_memory_usage_megabytes"] = memory.used / _MIB
                found[f"gpu_{number}_memory_usage_percentage"] = 100 * memory.used / memory.total
            if library.nvmlDeviceGetPowerUsage(handle, ctypes.byref(milliwatts)) == 0:
                found[f"gpu_{number}_power_usage_watts"] = milliwatts.value / 1000
        return found
