# Everything below belongs to one study and is named plainly; nothing here takes a GPU or long.
from unlearning.display import orders

PUBLISHED = f"{workflow.basedir}/resources/published/published.csv"
SHOWN = "../resources/captions/shown.rst"
TABLES = ["headline", *PLAN.study.tables]
FIGURES = list(PLAN.study.figures)
CONFIGFILES = list(map(str, workflow.config_settings.configfiles))


wildcard_constraints:
    study=STUDY,


rule collect:
    """Gather the numbers of every method in every scenario in one table."""
    input:
        metrics=orders.metrics(PLAN),
        logits=orders.logits(PLAN),
    output:
        union="results/{study}/metrics.csv",
    log:
        "results/{study}/logs/collect.txt",
    localrule: True
    conda:
        "../envs/score.yaml"
    params:
        settings=lambda wildcards: orders.collect(PLAN),
    script:
        "../scripts/collect.py"


rule cost:
    """Write down what every job took, and what that means for each stage and method."""
    input:
        specs=PLAN.specs(),
    output:
        ledger="results/{study}/cost.csv",
        csv=report(
            "results/{study}/tables/cost.csv",
            caption=SHOWN,
            category="cost",
            labels={"table": "cost"},
        ),
        md="results/{study}/tables/cost.md",
        tex="results/{study}/tables/cost.tex",
    log:
        "results/{study}/logs/cost.txt",
    localrule: True
    conda:
        "../envs/score.yaml"
    params:
        settings=lambda wildcards: orders.cost(PLAN),
    script:
        "../scripts/cost.py"


rule table:
    """Write one table of the study as csv, Markdown and LaTeX."""
    input:
        metrics=rules.collect.output.union,
        published=PUBLISHED,
    output:
        csv=report(
            "results/{study}/tables/{table}.csv",
            caption=SHOWN,
            category=lambda wildcards: orders.protocols(
                PLAN, PLAN.study.tables, wildcards.table
            ),
            labels={"table": "{table}"},
        ),
        md="results/{study}/tables/{table}.md",
        tex="results/{study}/tables/{table}.tex",
    log:
        "results/{study}/logs/table-{table}.txt",
    wildcard_constraints:
        table="|".join(TABLES),
    localrule: True
    conda:
        "../envs/score.yaml"
    params:
        settings=lambda wildcards: orders.table(PLAN, wildcards.table),
    script:
        "../scripts/tables.py"


rule figure:
    """Draw one figure of the study as svg and png."""
    input:
        lambda wildcards: orders.figure_files(PLAN, wildcards.figure),
        metrics=rules.collect.output.union,
    output:
        svg=report(
            "results/{study}/figures/{figure}.svg",
            caption=SHOWN,
            category=lambda wildcards: orders.protocols(
                PLAN, PLAN.study.figures, wildcards.figure
            ),
            labels={"figure": "{figure}"},
        ),
        png="results/{study}/figures/{figure}.png",
    log:
        "results/{study}/logs/figure-{figure}.txt",
    wildcard_constraints:
        figure="|".join(FIGURES) or "none",
    localrule: True
    conda:
        "../envs/score.yaml"
    params:
        settings=lambda wildcards: orders.figure(PLAN, wildcards.figure),
    script:
        "../scripts/figures.py"


rule meta:
    """Measure the measures: what every metric of the study is worth."""
    input:
        metrics=rules.collect.output.union,
    output:
        csv=report(
            "results/{study}/tables/meta.csv",
            caption=SHOWN,
            category="metrics",
            labels={"table": "meta"},
        ),
        md="results/{study}/tables/meta.md",
        tex="results/{study}/tables/meta.tex",
    log:
        "results/{study}/logs/meta.txt",
    localrule: True
    conda:
        "../envs/score.yaml"
    params:
        settings=lambda wildcards: orders.meta(PLAN),
    script:
        "../scripts/meta.py"


rule headline:
    """Write the table that is printed when a run ends."""
    input:
        metrics=rules.collect.output.union,
    output:
        text="results/{study}/headline.txt",
    log:
        "results/{study}/logs/headline.txt",
    localrule: True
    conda:
        "../envs/score.yaml"
    params:
        settings=lambda wildcards: orders.headline(PLAN),
    script:
        "../scripts/headline.py"


rule report:
    """Write the study's page: numbers, figures, tables, controls and costs in one file that needs no network."""
    input:
        specs=PLAN.specs(),
        metrics=rules.collect.output.union,
        ledger=rules.cost.output.ledger,
        published=PUBLISHED,
        tables=expand(rules.table.output, table=TABLES, allow_missing=True)
        + rules.cost.output[1:]
        + rules.meta.output,
        figures=expand(rules.figure.output, figure=FIGURES, allow_missing=True),
        template=f"{workflow.basedir}/resources/page/page.html",
        stylesheet=f"{workflow.basedir}/resources/page/page.css",
    output:
        html="results/{study}/report.html",
    log:
        "results/{study}/logs/report.txt",
    localrule: True
    conda:
        "../envs/score.yaml"
    params:
        settings=lambda wildcards: orders.report(PLAN, CONFIGFILES),
    script:
        "../scripts/report.py"


rule tables:
    """All tables of the study."""
    input:
        expand(rules.table.output, study=STUDY, table=TABLES),
        expand(rules.cost.output, study=STUDY),
        expand(rules.meta.output, study=STUDY),
    localrule: True


rule figures:
    """All figures of the study."""
    input:
        expand(rules.figure.output, study=STUDY, figure=FIGURES),
    localrule: True
