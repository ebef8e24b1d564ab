# These rules write a study's page, what a run prints at its end, and a list of what failed.
TABLES = files_in("tables", table=["headline", *PLAN.study.tables])
FIGURES = files_in("figures", figure=list(PLAN.study.figures))


rule report:
    """Write the study's page in one file that needs no network, and what a run prints at its end.

    Inputs: all numbers, records and comparisons, the cost ledger, every table and figure.
    """
    input:
        compared=from_wildcards(parameters.verdicts, result=cached_inputs),
        metrics=rules.collect.output.union,
        ledger=rules.cost.output.ledger,
        records=rules.collect.output.lists,
        tables=TABLES,
        figures=FIGURES,
    output:
        html=f"results/{STUDY}/report.html",
        summary=f"results/{STUDY}/summary.json",
    log:
        f"results/{STUDY}/logs/report.txt",
    localrule: FEW_CASES
    conda:
        "../envs/score.yaml"
    resources:
        **reserved("comparisons"),
    params:
        stage="report",
        settings=lambda wildcards: parameters.report(PLAN, CONFIGFILES),
        specs=lambda wildcards, input: PLAN.specs(),  # the ledger's
    script:
        "../scripts/job.py"


rule failures:
    """List the methods, models, attacks and metrics that failed, one line each, and fail if there are any.

    This rule runs last, when all other files exist. Inputs: all numbers, and the page.
    """
    input:
        html=rules.report.output.html,
        metrics=rules.collect.output.union,
    output:
        text=f"results/{STUDY}/failures.txt",
    log:
        f"results/{STUDY}/logs/failures.txt",
    localrule: True
    conda:
        "../envs/score.yaml"
    params:
        stage="failures",
    script:
        "../scripts/job.py"


rule tables:
    """Make all tables of the study."""
    input:
        TABLES,
        rules.cost.output.ledger,
    localrule: True


rule figures:
    """Draw all figures of the study."""
    input:
        FIGURES,
    localrule: True
