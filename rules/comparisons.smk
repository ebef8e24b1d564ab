rule comparisons:
    """Compare all methods of one scenario with retraining, and decide the verdicts.

    Inputs: metrics and effects of every method. `{node}`: data, protocol and model, and the key.
    """
    input:
        unpack(inputs("comparisons")),
    output:
        verdicts="results/comparisons/{node}/verdicts.csv",
        distances="results/comparisons/{node}/distances.csv",
        ranks="results/comparisons/{node}/ranks.csv",
        resolution="results/comparisons/{node}/resolution.csv",
        spec="results/comparisons/{node}/spec.json",
    log:
        "results/comparisons/{node}/log.txt",
    priority: 2
    conda:
        "../envs/score.yaml"
    resources:
        **reserved("comparisons"),
    params:
        settings=settings("comparisons"),
    script:
        "../scripts/comparisons.py"
