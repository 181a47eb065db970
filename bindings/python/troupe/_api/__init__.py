"""Public names of `troupe` itself: sessions, the runtime context, GPUs of this process."""
