"""Where time goes: spans that processes record, and stacks and profiles taken from outside."""
