"""Files and tables: every one is written whole or not at all, and checked when it is read."""
