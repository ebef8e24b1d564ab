"""Score, compare and show: each module reads files, calls the library and writes files."""
