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

    ``counts``: rule → number of its jobs. ``slots``: how many run at once. ``small``: whether the shipped rates hold
    for the models. ``started``: seconds on any clock, which all other times use too. ``running``: job → its rule, its
    method and when it started. ``done`` and ``seconds``: for each rule, the jobs that have ended and their time in all.
    """

    counts: Mapping[str, int]
    slots: int
    small: bool = True
    started: float = 0.0
    running: dict[int, tuple[str, str, float]] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def begin(self, job: int, rule: str, label: str, now: float) -> None:
        """Record that a job of a ``rule`` starts. The last part of its ``label`` is the method, which `line` prints."""
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

    def known(self) -> bool:
        """Return whether the remaining time can be estimated: models are ``small``, no job holds models, or a job with
        models has ended."""
        heavy = [rule for rule in HEAVY if self.counts.get(rule)]
        return self.small or not heavy or any(self.done[rule] for rule in heavy)

    def left(self, now: float) -> float:
        """Return the estimated seconds until the end of the run.

        This is the remaining work divided by the number of parallel jobs. It is at least the time of one job of every
        unfinished rule in `CHAIN`, because these rules wait for each other. The assumed time of a job is the mean
        over the ended jobs of its rule and one imagined job, which takes the shipped rate times the slowness of this
        machine. A job that has run for longer is assumed to need a fifth of that time again.
        """
        done = sum(count * self.rate(rule) for rule, count in self.done.items())
        speed = (sum(self.seconds.values()) + TRUST) / (done + TRUST)  # how many times as long as by the shipped rates
        work = alone = 0.0  # the seconds of all remaining jobs, and of one job of each unfinished rule in `CHAIN`
        for rule, count in self.counts.items():
            each = (self.seconds[rule] + self.rate(rule) * speed) / (self.done[rule] + 1)
            running = [now - since for its_rule, _, since in self.running.values() if its_rule == rule]
            rest = [max(each - seconds, 0.2 * seconds) for seconds in running]
            rest += [each] * (count - self.done[rule] - len(running))
            work += sum(rest)
            alone += max(rest, default=0.0) if rule in CHAIN else 0.0
        return max(work / max(self.slots, 1), alone)

    def rate(self, rule: str) -> float:
        """Return the shipped rate of a rule: the seconds of one of its jobs. Rules that read all results take longer
        with every method."""
        return RATES.get(rule, SHORT) + (EACH * self.counts.get("metrics", 0) if rule in GATHER else 0.0)

    def share(self, now: float) -> float:
        """Return the share of the run's estimated time that has passed, from 0 to 1; 1 once all jobs have ended."""
        passed = now - self.started
        return 1.0 if self.ended >= self.jobs else passed / max(passed + self.left(now), 1e-9)

    def line(self, now: float, width: int = 100) -> str:
        """Return a line such as "[#####-----] 54 % 31 of 62 jobs, about 30 s left: unlearn salun", shorter than
        ``width``.

        As long as the remaining time is unknown, the line has the share of jobs that have ended, and no time.
        """
        share = self.share(now) if self.known() else self.ended / max(self.jobs, 1)
        bar = f"[{'#' * int(20 * share):-<20}] {share:4.0%}".replace("%", " %")
        left = f", {spoken(self.left(now))} left" if self.known() and self.ended < self.jobs else ""
        now_running = ", ".join(
            dict.fromkeys(WORDS.get(rule, rule).format(method) for rule, method, _ in self.running.values())
        )
        text = f"{bar}  {self.ended} of {self.jobs} jobs{left}{f': {now_running}' if now_running else ''}"
        return text if len(text) < width else f"{text[: max(width - 2, 0)]}…"


def spoken(seconds: float) -> str:
    """Return a duration in words: "less than 10 s", "about 40 s", "about 3 min", "about 2 h"."""
    if seconds < 10:
        return "less than 10 s"
    if seconds < 90:
        return f"about {round(seconds, -1):.0f} s"
    if seconds < 90 * 60:
        return f"about {seconds / 60:.0f} min"
    hours = seconds / 3600
    return f"about {hours:.1f} h" if hours < 10 else f"about {hours:.0f} h"
