rule data:
    """Load a data set and write it in the one layout that every later stage reads."""
    output:
        data="results/data/{node}/data.npz",
        spec="results/data/{node}/spec.json",
    log:
        "results/data/{node}/log.txt",
    priority: PRIORITY["data"]
    conda:
        "../envs/train.yaml"
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        settings=settings("data"),
        place=place("data"),
    script:
        "../scripts/data.py"
