rule metrics:
    """Turn the scores and logits of one method in one scenario into numbers with intervals, and a list of records.

    Inputs: as attack, scores; retrained and control (logits), selection, and what was read, relearned or generated
    besides. `{node}`: data, protocol, model and method, and the key.
    """
    input:
        unpack(inputs("metrics")),
    output:
        metrics="results/metrics/{node}/metrics.csv",
        contributions="results/metrics/{node}/contributions.npz",
        records="results/metrics/{node}/records.csv",
        spec="results/metrics/{node}/spec.json",
    log:
        "results/metrics/{node}/log.txt",
    conda:
        "../envs/score.yaml"
    resources:
        **reserved("metrics"),
    params:
        settings=settings("metrics"),
        place=place("metrics"),
    script:
        "../scripts/metrics.py"
