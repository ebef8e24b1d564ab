rule data:
    """Load a data set and write it in the one layout that every later stage reads.

    Inputs: none; place says where a source lies. `{node}`: the source and what was done to its labels, and the key.
    """
    output:
        data="results/data/{node}/data.npz",
        spec="results/data/{node}/spec.json",
    log:
        "results/data/{node}/log.txt",
    priority: PRIORITY["data"]
    conda:
        "../envs/train.yaml"
    resources:
        **reserved("data"),
    params:
        settings=settings("data"),
        place=place("data"),
    script:
        "../scripts/data.py"
