"""Estimate the progress of a run and its remaining time: from shipped rates, corrected by the jobs that have ended.

The module does not know Snakemake. `snakemake_logger_plugin_unlearning` reports what starts and ends, and prints the
lines.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

#: Shipped rates: seconds from start to end of a job of the quickstart and the tour, two at once on two cores; of other
#: rules, such as a table, `SHORT`.
RATES = {
    "data": 1.5, "splits": 0.5, "pretrain": 15.0, "train": 4.0, "selection": 0.5, "tune": 15.0, "unlearn": 1.4,
    "signals": 0.5, "metrics": 1.6, "comparisons": 1.0,
    "figure": 0.8, "verdicts": 1.0, "collect": 0.8, "meta": 0.8,
}  # fmt: skip
SHORT = 0.3

#: Rules whose single job reads all results, and its additional seconds for every method of a scenario.
GATHER = ("verdicts", "report", "meta", "collect")
EACH = 0.018

#: Stages whose jobs hold models. How long such jobs take is known only once one has ended, unless models are small.
HEAVY = ("pretrain", "train", "tune", "unlearn", "signals")

#: Rules in the order in which the jobs of one wait for those of another.
CHAIN = ("data", "splits", "pretrain", "train", "selection", "tune", "unlearn", "signals", "metrics",
         "comparisons", "collect", "table", "report")  # fmt: skip

#: Rule → what it does, in words; {} is the method. Other rules are printed by their names.
WORDS = {
    "data": "reading data", "splits": "drawing who sees what", "pretrain": "training the base", "train": "training",
    "selection": "choosing samples", "tune": "tuning {}", "unlearn": "unlearning by {}",
    "signals": "reading signals",
    "metrics": "judging {}", "comparisons": "comparing with retraining", "collect": "collecting", "table": "tables",
    "figure": "figures",
}  # fmt: skip

#: Seconds over all rules that count as measured at the shipped rates.
TRUST = 2.0


@dataclass
class Progress:
    """The progress of a run, from which its remaining time is estimated.

    Parameters
    ----------
    counts
        Rule → number of its jobs.
    slots
        How many run at once.
    small
        Whether the shipped rates hold for the models.
    started
        Seconds on any clock, which all other times use too.
    running
        Job → its rule, its method and when it started.
    done, seconds
        For each rule, the jobs that have ended and their time in all.
    """

    counts: Mapping[str, int]
    slots: int
    small: bool = True
    started: float = 0.0
    running: dict[int, tuple[str, str, float]] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def begin(self, job: int, rule: str, label: str, now: float) -> None:
        """Record that a job of a ``rule`` of Snakemake starts. The last part of its ``label``, after the last hyphen,
        is the method, which `line` prints."""
        self.running[job] = rule, label.rpartition("-")[2].replace("_", " "), now

    def end(self, job: int, now: float) -> None:
        """Record that a job has ended successfully, with its time. A job whose start is unknown is ignored."""
        if job in self.running:
            rule, _, since = self.running.pop(job)
            self.done[rule] += 1
            self.seconds[rule] += now - since

    @property
    def jobs(self) -> int:
        """The number of all jobs of the run."""
        return sum(self.counts.values())

    @property
    def ended(self) -> int:
        """The number of jobs that have ended."""
        return sum(self.done.values())

    def time_is_known(self) -> bool:
        """Return whether the remaining time can be estimated: models are ``small``, no job of the run holds models
        (`HEAVY`), or a job with models has ended."""
        heavy = [rule for rule in HEAVY if self.counts.get(rule)]
        return self.small or not heavy or any(self.done[rule] for rule in heavy)

    def seconds_left(self, now: float) -> float:
        """Return the estimated seconds until the end of the run.

        This is the remaining work divided by the number of parallel jobs. It is at least the time of one job of every
        unfinished rule of Snakemake in `CHAIN`, because these rules wait for each other. The assumed time of a job is
        the mean over the ended jobs of its rule and one imagined job, which takes the shipped rate times the slowness
        of this machine: the time of all ended jobs divided by that of the shipped rates, each plus `TRUST` seconds, so
        that it is about 1 at first. A running job is
        assumed to need at least another fifth of the time that it has run.
        """
        shipped = sum(count * self.rate(rule) for rule, count in self.done.items())  # by the rates, for all ended jobs
        slowness = (sum(self.seconds.values()) + TRUST) / (shipped + TRUST)
        work = chain = 0.0  # the seconds of all remaining jobs, and of one job of each unfinished rule in `CHAIN`
        for rule, count in self.counts.items():
            per_job = (self.seconds[rule] + self.rate(rule) * slowness) / (self.done[rule] + 1)
            running = [now - since for its_rule, _, since in self.running.values() if its_rule == rule]
            remaining = [max(per_job - seconds, 0.2 * seconds) for seconds in running]
            remaining += [per_job] * (count - self.done[rule] - len(running))  # jobs that have not started
            work += sum(remaining)
            chain += max(remaining, default=0.0) if rule in CHAIN else 0.0
        return max(work / max(self.slots, 1), chain)

    def rate(self, rule: str) -> float:
        """Return the shipped rate of a rule of Snakemake: the seconds of one of its jobs. Rules that read all results
        take longer with every job of metrics, of which each method of a scenario has one."""
        return RATES.get(rule, SHORT) + (EACH * self.counts.get("metrics", 0) if rule in GATHER else 0.0)

    def share(self, now: float) -> float:
        """Return the share of the run's estimated time that has passed, from 0 to 1; 1 once all jobs have ended."""
        passed = now - self.started
        return 1.0 if self.ended >= self.jobs else passed / max(passed + self.seconds_left(now), 1e-9)

    def line(self, now: float, width: int = 100) -> str:
        """Return a line such as "[##########----------]  54 %  31 of 62 jobs, about 30 s left: unlearning by salun". A
        line that would not be shorter than ``width`` is cut.

        As long as the remaining time is unknown, the line has the share of jobs that have ended, and no time. It names
        what is running, each kind of job once.
        """
        known = self.time_is_known()
        share = self.share(now) if known else self.ended / max(self.jobs, 1)
        bar, percent = ("#" * int(20 * share)).ljust(20, "-"), f"{share:4.0%}".replace("%", " %")
        text = f"[{bar}] {percent}  {self.ended} of {self.jobs} jobs"
        if known and self.ended < self.jobs:
            text += f", {in_words(self.seconds_left(now))} left"
        if self.running:
            running = (WORDS.get(rule, rule).format(method) for rule, method, _ in self.running.values())
            text += f": {', '.join(dict.fromkeys(running))}"
        return text if len(text) < width else f"{text[: max(width - 2, 0)]}…"


def in_words(seconds: float) -> str:
    """Return a duration in words: "less than 10 s", "about 40 s", "about 3 min", "about 2 h"."""
    if seconds < 10:
        return "less than 10 s"
    if seconds < 90:
        return f"about {round(seconds, -1):.0f} s"
    if seconds < 90 * 60:
        return f"about {seconds / 60:.0f} min"
    hours = seconds / 3600
    return f"about {hours:.1f} h" if hours < 10 else f"about {hours:.0f} h"
