rule relearn:
    """Teach one batch of models a half of what they forgot once more, and see how fast the other half comes back.

    Inputs: data, splits, models (weights, of train or unlearn). `{node}`: data, protocol, model, blocks and method, and the key.
    """
    input:
        unpack(inputs("relearn")),
    output:
        relearned="results/relearn/{node}/relearned.npz",
        spec="results/relearn/{node}/spec.json",
    log:
        "results/relearn/{node}/log.txt",
    priority: PRIORITY["relearn"]
    retries: RETRIES
    conda:
        "../envs/train.yaml"
    resources:
        **reserved("relearn"),
        gpu=GPU,
    params:
        settings=settings("relearn"),
        place=place("relearn"),
    script:
        "../scripts/relearn.py"
