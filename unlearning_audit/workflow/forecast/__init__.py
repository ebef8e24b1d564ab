"""What a study will cost, before it runs: seconds, bytes and memory of every job.

* `rates`: what a job of each stage takes, and what it asks a cluster for
* `reading`: what a job that scores reads, from its files
* `sizes`: how many models and samples a job has
* `probe`: seconds per row, measured on this machine
* `arithmetic`: all of these make the forecast
* `pilots`: which studies of the same kind are done, for how many models a verdict takes

What is printed of it lies in `display.tables.forecast`.
"""
