"""The Snakefile as a module of another workflow, which has a config.yaml and rules of its own."""

import yaml

import warm
from workplace import TINY

OUTER = """
configfile: "config.yaml"

module unlearning:
    snakefile: {snakefile!r}
    config: config["audit"]

use rule * from unlearning{name}

rule mine:
    input: "results/tiny/report.html"
    output: "mine.txt"
    shell: "wc -c {{input}} > {{output}}"
"""


def snakemake(workplace, *arguments: str, check: bool = True):
    run = warm.run([*arguments, "--cores", "2"], workplace.environment, workplace.folder)
    assert run.returncode == 0 or not check, run.stdout
    return run


def outer(workplace, audit: dict, name: str = "", more: str = "") -> None:
    """Another workflow in the working folder; the ``name`` that rules get there, ``more`` of the module."""
    snakefile = str(workplace.tree / "Snakefile")
    text = OUTER.format(snakefile=snakefile, name=name)
    (workplace.folder / "Snakefile").write_text(text.replace("\n\nuse", f"{more}\n\nuse"))
    (workplace.folder / "config.yaml").write_text(yaml.safe_dump({"mine": 1, "audit": audit}))


def test_another_workflow_uses_every_rule_with_its_own_config(workplace, finished):
    outer(workplace, TINY)
    counts = workplace.job_counts(snakemake(workplace, "mine", "--dry-run").stdout)
    alone = workplace.planned("--forceall")
    del alone["all"], alone["failures"]
    assert counts == {**alone, "mine": 1}
    snakemake(workplace, "mine", "--until", "splits")
    made = [path.relative_to(workplace.folder) for path in workplace.find("splits/*/spec.json")]
    assert made
    assert all((finished.folder / path).exists() for path in made), "the same study makes the same artifacts"


def test_what_is_wrong_with_the_config_is_one_sentence(workplace):
    outer(workplace, {**TINY, "bootstrap": "many"})
    run = snakemake(workplace, "mine", "--dry-run", check=False)
    assert run.returncode == 1
    assert "config: bootstrap:" in run.stdout
    assert "Traceback" not in run.stdout
