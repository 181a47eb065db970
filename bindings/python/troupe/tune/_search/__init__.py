"""Where configurations come from: spaces, what they contain, and searchers."""
