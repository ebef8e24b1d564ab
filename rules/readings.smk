rule readings:
    """Read gradients or single tokens of one batch of models, from their stored weights.

    Inputs: data, splits, models (weights, of train or unlearn). `{node}`: data, protocol, model, blocks, method and
    signal, and the key.
    """
    input:
        unpack(inputs("readings")),
    output:
        readings="results/readings/{node}/readings.npz",
        spec="results/readings/{node}/spec.json",
    log:
        "results/readings/{node}/log.txt",
    priority: PRIORITY["readings"]
    retries: RETRIES
    conda:
        "../envs/train.yaml"
    resources:
        **reserved("readings"),
        gpu=GPU,
    params:
        settings=settings("readings"),
        place=place("readings"),
    script:
        "../scripts/readings.py"
