# These rules write a study's page, what a run prints at its end, and a list of what failed.
CONFIGFILES = list(map(str, FILES))


rule report:
    """Write the study's page in one file that needs no network, and what a run prints at its end.

    Inputs: all numbers, records and comparisons, the cost ledger, every table and figure.
    """
    input:
        compared=reads(parameters.verdicts),
        metrics=rules.collect.output.union,
        ledger=rules.cost.output.ledger,
        records=rules.collect.output.lists,
        tables=lambda wildcards: tables_of(wildcards.study),
        figures=lambda wildcards: figures_of(wildcards.study),
    output:
        html="results/{study}/report.html",
        summary="results/{study}/summary.json",
    log:
        "results/{study}/logs/report.txt",
    localrule: SMALL
    conda:
        "../envs/score.yaml"
    resources:
        **reserved("comparisons"),
    params:
        settings=lambda wildcards: parameters.report(
            plan_of(wildcards.study), CONFIGFILES
        ),
        specs=lambda wildcards, input: plan_of(wildcards.study).specs(),  # the ledger's
    script:
        "../scripts/report.py"


rule failures:
    """List the methods, models, attacks and metrics that failed, one line each, and fail if there are any.

    This rule runs last, when all other files exist. Inputs: all numbers, and the page.
    """
    input:
        html=rules.report.output.html,
        metrics=rules.collect.output.union,
    output:
        text="results/{study}/failures.txt",
    log:
        "results/{study}/logs/failures.txt",
    localrule: True
    conda:
        "../envs/score.yaml"
    script:
        "../scripts/failures.py"


rule tables:
    """Make all tables of the study."""
    input:
        tables_of(STUDY),
        rules.cost.output.ledger.format(study=STUDY),
    localrule: True


rule figures:
    """Draw all figures of the study."""
    input:
        figures_of(STUDY),
    localrule: True
