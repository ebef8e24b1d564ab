# What a study will cost, before it is run: "snakemake forecast --cores all --configfile studies/swap.yaml".


rule forecast:
    """Print hours and disk of every stage, beside what they took where it is done; starts no other job."""
    log:
        f"results/{STUDY}/logs/forecast.txt",
    localrule: True
    conda:
        "../envs/train.yaml"
    params:
        settings=lambda wildcards: to_forecast(),
    script:
        "../scripts/forecast.py"
