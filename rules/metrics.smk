rule metrics:
    """Score every target sample by every attack, and turn scores and logits of one method in one scenario into numbers
    with intervals, and a list of records.

    Inputs: data, splits, originals and unlearned, retrained and control (logits), selection, and signals that were read
    later than the models were made; or populations, of logits from elsewhere. `{node}`: data, protocol, model and
    method, and the key.
    """
    input:
        unpack(inputs("metrics")),
    output:
        scores="results/metrics/{node}/scores.parquet",
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
