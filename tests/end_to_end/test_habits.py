"""What people do with any Snakemake workflow works with this one."""

import itertools
import re

from unlearning_audit.study import reading
from unlearning_audit.workflow import announcement, plan


def test_the_graph_of_rules_reads_as_the_sentence(finished):
    text = finished.run("--rulegraph", "--forceall").stdout
    names = dict(re.findall(r'(\d+)\[label = "(\w+)', text))
    # (rule, rule that waits for it), as Graphviz draws them
    graph = {(names[one], names[other]) for one, other in re.findall(r"(\d+) -> (\d+)", text)}
    for chain in (("data", "splits", "train", "unlearn", "metrics", "comparisons", "verdicts", "report"),
                  ("metrics", "collect", "table", "report")):  # fmt: skip
        assert graph.issuperset(itertools.pairwise(chain))


def test_jobs_are_counted_before_a_run_as_snakemake_counts_them(finished, monkeypatch):
    monkeypatch.chdir(finished.folder)
    whole = plan.make(reading.read(*reading.load(["study.yaml"])))
    assert announcement.jobs(whole, whole.all()) == finished.planned("--forceall")


def test_a_run_until_a_rule_goes_on_later_and_a_rule_can_be_forced(finished):
    assert finished.planned("--until", "train", "--forceall") == {"data": 1, "splits": 1, "train": 1}
    assert finished.planned("--forcerun", "verdicts") == {"verdicts": 1, "report": 1, "failures": 1, "all": 1}
