"""The study on one page without a network: sections, sentences and drawings."""
