# Each system of evaluation by itself: "snakemake swap". Included last, for a protocol may be called like a stage.
for system, study in SYSTEMS.items():
    if workflow.is_rule(system):
        continue

    rule:
        """One system of evaluation by itself: what the study does with its protocols."""
        name:
            system
        input:
            rules.report.output.html.format(study=study),
            rules.failures.output.text.format(study=study),
        localrule: True
