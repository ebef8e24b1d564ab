rule unlearn:
    """Make one batch of trained models forget by one method, and write their logits.

    Inputs: data; splits; trained, the weights before this request; base, as for train; tuned, the chosen options of a
    tuned method; like, the models whose change a sham (a random change of weights) matches in size. `{node}`: data,
    protocol, model, blocks and method, and the key.
    """
    input:
        unpack(inputs("unlearn")),
    output:
        models=weights("results/unlearn/{node}/models.safetensors"),
        logits="results/unlearn/{node}/logits.npz",
        spec="results/unlearn/{node}/spec.json",
    log:
        "results/unlearn/{node}/log.txt",
    priority: making(4)
    retries: RETRIES
    conda:
        "../envs/train.yaml"
    resources:
        **reserved("unlearn"),
        gpu=GPU,
    params:
        settings=settings("unlearn"),
        place=place("unlearn"),
    script:
        "../scripts/unlearn.py"
