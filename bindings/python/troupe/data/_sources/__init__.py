"""Sources of blocks: files of several kinds, ranges of numbers, rows that are held."""
