"""What is known of a study before it runs.

* `rates`: what a job of each stage asks a cluster for
* `reading`: what a job that scores reads, from its files
* `pilots`: which studies of the same kind are done, for how many models a verdict takes
"""
