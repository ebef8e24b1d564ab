rule generate:
    """Let the language models of one batch say by themselves what stands in the scored tokens of samples.

    Inputs: data, splits, models (weights, of train or unlearn). `{node}`: data, protocol, model, blocks and method, and the key.
    """
    input:
        unpack(inputs("generate")),
    output:
        generations="results/generate/{node}/generations.npz",
        spec="results/generate/{node}/spec.json",
    log:
        "results/generate/{node}/log.txt",
    priority: PRIORITY["generate"]
    retries: RETRIES
    conda:
        "../envs/train.yaml"
    resources:
        **reserved("generate"),
        gpu=GPU,
    params:
        settings=settings("generate"),
        place=place("generate"),
    script:
        "../scripts/generate.py"
