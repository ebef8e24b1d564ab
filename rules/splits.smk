rule splits:
    """Draw which model of a batch sees which sample, and which it is asked to forget.

    Inputs: data; selection, where samples are chosen by other models. `{node}`: data, protocol and blocks, and the
    key.
    """
    input:
        unpack(inputs("splits")),
    output:
        membership="results/splits/{node}/membership.npz",
        spec="results/splits/{node}/spec.json",
    log:
        "results/splits/{node}/log.txt",
    priority: PRIORITY["splits"]
    conda:
        "../envs/score.yaml"
    resources:
        **reserved("splits"),
    params:
        settings=settings("splits"),
        place=place("splits"),
    script:
        "../scripts/splits.py"
