"""The tables of the options of nodes and of heads, and entries that other tables share."""
