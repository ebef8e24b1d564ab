rule signals:
    """Read of one batch of models what somebody asks beyond logits, from their stored weights: gradients, single tokens,
    hidden layers, what they learn once more, what they generate.

    Only of models that were there already; others are asked by the job that makes them. Inputs: data, splits, models
    (weights, of train or unlearn). `{node}`: data, protocol, model, blocks, method and signal, and the key.
    """
    input:
        unpack(inputs("signals")),
    output:
        signals="results/signals/{node}/signals.npz",
        spec="results/signals/{node}/spec.json",
    log:
        "results/signals/{node}/log.txt",
    priority: PRIORITY["signals"]
    retries: RETRIES
    conda:
        "../envs/train.yaml"
    resources:
        **reserved("signals"),
        gpu=GPU,
    params:
        settings=settings("signals"),
        place=place("signals"),
    script:
        "../scripts/signals.py"
