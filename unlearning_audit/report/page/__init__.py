"""The report page: sections, sentences and drawings in one file that needs no network."""
