rule attack:
    """Score every target sample of every target model with every attack in each of its forms.

    Inputs: data, splits, originals and unlearned (logits), original_readings and unlearned_readings where an attack
    asks; or populations, of logits from elsewhere. `{node}`: data, protocol, model and method, and the key.
    """
    input:
        unpack(inputs("attack")),
    output:
        scores="results/attack/{node}/scores.parquet",
        spec="results/attack/{node}/spec.json",
    log:
        "results/attack/{node}/log.txt",
    conda:
        "../envs/score.yaml"
    resources:
        **reserved("attack"),
    params:
        settings=settings("attack"),
        place=place("attack"),
    script:
        "../scripts/attack.py"
