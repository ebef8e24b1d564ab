rule external:
    """Check a user's own logits and memberships, and write them in the one layout that every later stage reads.

    Inputs: files of logits and memberships that came from elsewhere, named in place. `{node}`: protocol and
    population, and the key.
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
