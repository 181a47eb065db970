"""A launch that waits for the card, for tests of what becomes of such a one."""

from __future__ import annotations

from troupe.launch import LaunchHandle, distributed


def waiting_launch(timeout_s: float) -> LaunchHandle:
    """Start a rank whose main thread is in the driver of the card, for as long as it is let."""

    def waits() -> None:
        import torch

        torch.cuda._sleep(1 << 50)
        print("waits", flush=True)
        torch.cuda.synchronize()

    handle = distributed(gpus=1, remote=True, timeout=timeout_s, quiet=True)(waits).submit()
    assert next(iter(handle.logs(follow=True))).endswith("waits")
    return handle
