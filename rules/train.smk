rule train:
    """Train one batch of target and shadow models on their own samples, and write their logits while they are in
    memory.

    Inputs: data; splits; base, the weights from which all models start, if there are any. `{node}`: data, protocol,
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
    priority: making(6)
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
