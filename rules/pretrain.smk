rule pretrain:
    """Train the one model on public text from which all others of a scenario start.

    Inputs: data. `{node}`: data and model, and the key.
    """
    input:
        unpack(inputs("pretrain")),
    output:
        models=weights("results/pretrain/{node}/models.safetensors"),
        spec="results/pretrain/{node}/spec.json",
    log:
        "results/pretrain/{node}/log.txt",
    priority: 6
    retries: RETRIES
    conda:
        "../envs/train.yaml"
    resources:
        **reserved("pretrain"),
        gpu=GPU,
    params:
        settings=settings("pretrain"),
        place=place("pretrain"),
    script:
        "../scripts/pretrain.py"
