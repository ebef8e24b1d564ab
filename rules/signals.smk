rule signals:
    """Compute one signal beyond logits from the stored weights of a batch of models: gradients, probabilities of
    tokens, hidden layers, predictions after relearning, or generated texts.

    This is for models that exist already. For others, the job that makes them computes their signals. Inputs: data,
    splits, models (weights, of train or unlearn). `{node}`: data, protocol, model, blocks, method and signal, and the
    key.
    """
    input:
        unpack(inputs("signals")),
    output:
        signals="results/signals/{node}/signals.npz",
        spec="results/signals/{node}/spec.json",
    log:
        "results/signals/{node}/log.txt",
    priority: 3
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
