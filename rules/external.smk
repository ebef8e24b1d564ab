rule external:
    """Check a user's own logits or models and their memberships, and write them in the layout that all later stages
    read.

    Inputs: none; ``place`` names the user's files. `{node}`: protocol, population and, if it has a population of its
    own, method, and the key.
    """
    output:
        data="results/external/{node}/data.npz",
        membership="results/external/{node}/membership.npz",
        logits="results/external/{node}/logits.npz",
        spec="results/external/{node}/spec.json",
    log:
        "results/external/{node}/log.txt",
    conda:
        "../envs/train.yaml"
    resources:
        **reserved("external"),
    params:
        settings=settings("external"),
        place=place("external"),
    script:
        "../scripts/external.py"
