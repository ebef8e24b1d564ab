rule selection:
    """Tell which samples the models of one scenario memorise, for others to choose their target samples by."""
    input:
        unpack(inputs("selection")),
    output:
        selection="results/selection/{node}/selection.npz",
        spec="results/selection/{node}/spec.json",
    log:
        "results/selection/{node}/log.txt",
    conda:
        "../envs/score.yaml"
    resources:
        mem_mb=8000,
        runtime=60,
    params:
        settings=settings("selection"),
    script:
        "../scripts/selection.py"
