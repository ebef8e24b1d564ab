"""Turn a study into jobs: the plan of nodes with keys, parameters of rules, forecasts, progress, and the code of
jobs."""
