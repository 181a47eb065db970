"""What blocks are read from: files of several kinds, ranges of numbers, rows that are held."""
