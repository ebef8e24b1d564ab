"""From a study to jobs: the plan of nodes with keys, parameters of rules, forecast, progress, changes to Snakemake."""
