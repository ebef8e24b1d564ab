# Rules that write the study's results. None needs a GPU or much time. A file of the library's `stages/`, or of `scripts/`,
# says what each makes; `collect` makes all numbers and all records, `cost` the ledger, beside what they show.
from unlearning_audit.workflow import parameters


wildcard_constraints:
    table="|".join(["headline", *PLAN.study.tables]),
    figure="|".join(PLAN.study.figures) or "none",


# Rule → its category in Snakemake's report, its priority, and further outputs, role → file.
SHOWN = {
    "collect": ("verdicts", 0, {"union": "metrics.csv", "lists": "records.csv"}),
    "cost": ("cost", 2, {"ledger": "cost.csv"}),
    "verdicts": ("verdicts", 1, {}),
    "tuning": ("verdicts", 1, {}),
    "meta": ("metrics", 1, {}),
    "table": ("tables", 0, {}),
    "figure": ("figures", 1, {}),
}
# Rule → the tables and the figures that one of its jobs makes. These jobs make one, whose name is a wildcard.
BY_WILDCARD = {"table": (["{table}"], ()), "figure": ((), ["{figure}"])}

for name, (category, level, further) in SHOWN.items():
    wildcard = [name] if name in BY_WILDCARD else []
    reads_numbers = wildcard or name == "meta"

    rule:
        """Write tables or figures of the study, from the files that the plan names, by the function of this name."""
        name:
            name
        input:
            from_wildcards(getattr(parameters, name), *wildcard, result=cached_inputs),
            **({"metrics": rules.collect.output.union} if reads_numbers else {}),
        output:
            **display(category, *(DISPLAYS | BY_WILDCARD)[name]),
            **{role: f"results/{STUDY}/{file}" for role, file in further.items()},
        log:
            f"results/{STUDY}/logs/{name}"
            + (f"-{{{name}}}.txt" if wildcard else ".txt"),
        priority: level
        localrule: FEW_CASES or name in ("cost", "table")
        conda:
            "../envs/score.yaml"
        resources:
            **reserved("comparisons"),
        params:
            stage=name,
            settings=from_wildcards(getattr(parameters, name), *wildcard),
        script:
            "../scripts/job.py"


# `snakemake --list-rules` describes a rule by the first sentence of its stage.
for listed in workflow.rules:
    if listed.name in {*OUTPUTS, *SHOWN}:
        text = jobs.file_of(listed.name).read_text(encoding="utf-8")
        listed.docstring = " ".join(text.split('"""')[1].partition("\n\n")[0].split())
