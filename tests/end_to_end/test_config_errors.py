"""What somebody sees who runs Snakemake on a wrong study: one sentence, no traceback, and nothing is run."""

import pytest
import yaml

import warm
from workplace import TINY


def dry_run(workplace, *arguments: str):
    """A dry run in the working folder, where a module's config or no study at all may lie."""
    words = ["-n", "-s", str(workplace.tree / "Snakefile"), *arguments]
    run = warm.run(words, workplace.environment, workplace.folder)
    assert "Traceback" not in run.stdout
    return run


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        # nothing is inherited from the default study
        (("--configfile", "mine.yaml"), "mine.yaml: scenarios.one.data: is missing; add it"),
        (("--config", "bootstap=300"), "/config.yaml: bootstap: there is no such field, did you mean "
         "'bootstrap'? (known: batch, bootstrap, defaults, family, figures, keep, looks, margins, memory, only, "
         "retrain_spread, scenarios, seed, study, tables) (given by --config)"),
    ],
)  # fmt: skip
def test_a_wrong_study_ends_with_one_sentence(workplace, arguments, expected):
    (workplace.folder / "mine.yaml").write_text("study: mine\nscenarios: {one: {}}\n")
    run = dry_run(workplace, *arguments)
    assert run.returncode != 0
    assert any(line.endswith(expected) for line in run.stdout.splitlines())
    assert not (workplace.folder / "results").exists()


def test_a_study_of_ones_own_is_planned_with_what_the_command_line_changes(workplace):
    arguments = ("--configfile", "study.yaml", "--config", "scenarios={main: {recipe: {epochs: 2}}}")
    run = dry_run(workplace, "results/tiny/metrics.csv", *arguments)
    assert run.returncode == 0, run.stdout


# ---------------------------------------------------------------- as a module of another workflow

OUTER = """
configfile: "config.yaml"

module unlearning:
    snakefile: {snakefile!r}
    config: config["audit"]

use rule * from unlearning

rule mine:
    input: "results/tiny/report.html"
    output: "mine.txt"
    shell: "wc -c {{input}} > {{output}}"
"""


def outer(workplace, audit: dict, *arguments: str):
    """Run another workflow, which has a config.yaml and rules of its own, in the working folder."""
    (workplace.folder / "Snakefile").write_text(OUTER.format(snakefile=str(workplace.tree / "Snakefile")))
    (workplace.folder / "config.yaml").write_text(yaml.safe_dump({"mine": 1, "audit": audit}))
    return warm.run(["mine", "--cores", "2", *arguments], workplace.environment, workplace.folder)


@pytest.mark.slow
def test_another_workflow_uses_every_rule_with_its_own_config(workplace, finished):
    counts = workplace.job_counts(outer(workplace, TINY, "--dry-run").stdout)
    alone = workplace.planned("--forceall")
    del alone["all"], alone["failures"]
    assert counts == {**alone, "mine": 1}
    assert outer(workplace, TINY, "--until", "splits").returncode == 0
    made = [path.relative_to(workplace.folder) for path in workplace.find("splits/*/spec.json")]
    assert made
    assert all((finished.folder / path).exists() for path in made), "the same study makes the same artifacts"


def test_what_is_wrong_with_the_config_of_a_module_is_one_sentence(workplace):
    run = outer(workplace, {**TINY, "bootstrap": "many"}, "--dry-run")
    assert (run.returncode, "config: bootstrap:" in run.stdout, "Traceback" in run.stdout) == (1, True, False)
