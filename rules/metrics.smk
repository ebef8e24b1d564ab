rule metrics:
    """Score samples by every attack, then compute the numbers of one method in one scenario, with intervals, and a list
    of its records.

    Inputs: data; splits; logits of original, unlearned, retrained and control models; selection; and signals that jobs
    of their own computed. For imported models: populations, their files. `{node}`: data, protocol, model and method,
    and the key.
    """
    input:
        unpack(inputs("metrics")),
    output:
        scores="results/metrics/{node}/scores.parquet",
        metrics="results/metrics/{node}/metrics.csv",
        effects="results/metrics/{node}/effects.npz",
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
