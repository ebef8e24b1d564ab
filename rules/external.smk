rule import_logits:
    """Check a user's own logits and memberships, and write them in the one layout that every later stage reads."""
    output:
        data="results/import/{node}/data.npz",
        membership="results/import/{node}/membership.npz",
        logits="results/import/{node}/logits.npz",
        spec="results/import/{node}/spec.json",
    log:
        "results/import/{node}/log.txt",
    conda:
        "../envs/score.yaml"
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        settings=settings("import"),
        place=place("import"),
    script:
        "../scripts/import_logits.py"
