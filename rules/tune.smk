rule tune:
    """Try settings of one method on models drawn for tuning, and choose the setting that is evaluated.

    Inputs: data; splits; trained, the weights before unlearning; originals and retrained, logits; base, as for train.
    Outputs: the chosen setting, and all that were tried. `{node}`: data, protocol, model, blocks and method, and the
    key.
    """
    input:
        unpack(inputs("tune")),
    output:
        chosen="results/tune/{node}/chosen.json",
        trials="results/tune/{node}/trials.csv",
        spec="results/tune/{node}/spec.json",
    log:
        "results/tune/{node}/log.txt",
    priority: 5
    retries: RETRIES
    conda:
        "../envs/train.yaml"
    resources:
        **reserved("tune"),
        gpu=GPU,
    params:
        settings=settings("tune"),
        place=place("tune"),
    script:
        "../scripts/tune.py"
