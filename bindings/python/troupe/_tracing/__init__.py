"""Where time goes: spans that processes record, and profiles of them from outside."""
