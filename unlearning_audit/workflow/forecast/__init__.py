"""Predict what a study needs before it runs.

* `rates`: memory and time that a job of each stage requests from a cluster
* `pilots`: finished comparisons of the same kind, which predict detectable distances
"""
