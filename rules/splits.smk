rule splits:
    """Draw which samples each model of a batch sees, and which of them it has to forget.

    Inputs: data; selection, if samples are selected by other models. `{node}`: data, protocol and blocks, and the key.
    """
    input:
        unpack(inputs("splits")),
    output:
        membership="results/splits/{node}/membership.npz",
        spec="results/splits/{node}/spec.json",
    log:
        "results/splits/{node}/log.txt",
    priority: 7
    conda:
        "../envs/score.yaml"
    resources:
        **reserved("splits"),
    params:
        settings=settings("splits"),
        place=place("splits"),
    script:
        "../scripts/splits.py"
