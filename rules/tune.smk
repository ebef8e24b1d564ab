rule tune:
    """Try settings of one method on pairs of their own, and choose the one that is audited.

    Inputs: data, splits, trained, as for unlearn. Outputs: every setting that was tried, and the chosen one.
    """
    input:
        unpack(inputs("tune")),
    output:
        chosen="results/tune/{node}/chosen.json",
        trials="results/tune/{node}/trials.csv",
        spec="results/tune/{node}/spec.json",
    log:
        "results/tune/{node}/log.txt",
    priority: PRIORITY["tune"]
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
