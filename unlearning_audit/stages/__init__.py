"""Score, compare and show: each module has a function of its name, which reads files, calls the library and writes
files."""
