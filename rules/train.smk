rule train:
    """Target training and shadow training: train one batch of models on their own rows, and dump their logits while
    they are in memory.

    Inputs: data, splits; base, the weights that all models start from, if there are any. `{node}`: data, protocol,
    model and blocks, and the key.
    """
    input:
        unpack(inputs("train")),
    output:
        models=weights("results/train/{node}/models.safetensors"),
        logits="results/train/{node}/logits.npz",
        spec="results/train/{node}/spec.json",
    log:
        "results/train/{node}/log.txt",
    priority: PRIORITY["train"]
    retries: RETRIES
    conda:
        "../envs/train.yaml"
    resources:
        **reserved("train"),
        gpu=GPU,
    params:
        settings=settings("train"),
        place=place("train"),
    script:
        "../scripts/train.py"
