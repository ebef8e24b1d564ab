"""What gathers a large study is no job of a login node."""

import warm
from workplace import TINY

GATHER = {"collect", "verdicts", "figure", "meta", "report"}
ALWAYS = {"table", "failures", "cost"}


def local(workplace, study: dict) -> set[str]:
    """The rules that run where Snakemake does, on a cluster."""
    workplace.write(study)
    text = 'include: {!r}\nprint("local:", *workflow._localrules)\n'
    (workplace.folder / "Snakefile").write_text(text.format(str(workplace.tree / "Snakefile")))
    words = ["--configfile", "study.yaml", "--dry-run", "data"]
    said = warm.run(words, workplace.environment, workplace.folder).stdout
    return set(said.split("local:", 1)[1].split("\n", 1)[0].split())


def test_gathering_runs_on_the_login_node_for_a_small_study_only(workplace):
    assert local(workplace, TINY) >= GATHER | ALWAYS
    many = {f"s{number}": {"data": {"label_noise": number / 100}} for number in range(67)}
    large = {**TINY, "scenarios": many, "tables": {}, "figures": {}}
    assert local(workplace, large) & (GATHER | ALWAYS) == ALWAYS
