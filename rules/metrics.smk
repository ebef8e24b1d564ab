rule metrics:
    """Turn the scores and logits of one method in one scenario into numbers with intervals."""
    input:
        unpack(inputs("metrics")),
    output:
        metrics="results/metrics/{node}/metrics.csv",
        spec="results/metrics/{node}/spec.json",
    log:
        "results/metrics/{node}/log.txt",
    conda:
        "../envs/score.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: 4000 * attempt,
        runtime=lambda wildcards, attempt: 60 * attempt,
    params:
        settings=settings("metrics"),
    script:
        "../scripts/metrics.py"
