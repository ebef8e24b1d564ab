"""The library of the workflow; importable because Snakemake puts scripts/ on the path."""
