"""Files and tables, which are written atomically and checked when read."""
