"""Tensors that stay in their actor: when they are free again."""

from __future__ import annotations

from typing import Any

from troupe import exceptions


def wait_tensor_freed(tensor: Any, timeout: float | None = None) -> None:
    """In the actor that returned, or put, a tensor which stays in it (`tensor_transport="auto"`):
    blocks until nobody has a ref of it.

    Then it may be changed in place again. Returns at once for a tensor that is not kept. Raises
    GetTimeoutError after `timeout` seconds. Not in a method that itself was given the ref: its
    argument is one more.

        def step(self):
            wait_tensor_freed(self.weights)
            self.weights.add_(1)
    """
    from troupe._actors.tensors import kept, server

    table = server.table_or_none()
    if table is not None and not table.wait_until_freed(tensor, timeout):
        raise exceptions.GetTimeoutError(
            f"somebody still has a ref of the tensor ({kept.text_of(kept.spec_of(tensor))}) "
            f"{timeout:g} s after "
            "wait_tensor_freed() was called\n  drop the refs of the results that it is in"
        )
