"""Tensors that stay in the actor whose method returned them, while a ref of the result travels (docs/tensors.md)."""
