rule selection:
    """Find the samples that the models of one scenario memorise, among which other scenarios select their target
    samples.

    Inputs: data, splits, originals (logits of trained models). `{node}`: data, protocol and model, and the key.
    """
    input:
        unpack(inputs("selection")),
    output:
        selection="results/selection/{node}/selection.npz",
        spec="results/selection/{node}/spec.json",
    log:
        "results/selection/{node}/log.txt",
    priority: 5
    conda:
        "../envs/score.yaml"
    resources:
        **reserved("selection"),
    params:
        settings=settings("selection"),
    script:
        "../scripts/selection.py"
