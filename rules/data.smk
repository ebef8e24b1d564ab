rule data:
    """Load a data set and write it in the layout that all later stages read.

    Inputs: none; ``place`` states where the source lies. `{node}`: the source, with label noise and size if they are
    set, and the key.
    """
    output:
        data="results/data/{node}/data.npz",
        spec="results/data/{node}/spec.json",
    log:
        "results/data/{node}/log.txt",
    priority: 8
    conda:
        "../envs/train.yaml"
    resources:
        **reserved("data"),
    params:
        settings=settings("data"),
        place=place("data"),
    script:
        "../scripts/data.py"
