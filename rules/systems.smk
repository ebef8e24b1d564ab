# A rule for each evaluation system, as in "snakemake swap". They come last, because a protocol may have a stage's name.
for system, study in SYSTEMS.items():
    if workflow.is_rule(system):
        continue

    rule:
        """Make the page of one evaluation system: of the study's scenarios with its protocols."""
        name:
            system
        input:
            rules.report.output.html.format(study=study),
            rules.failures.output.text.format(study=study),
        localrule: True
