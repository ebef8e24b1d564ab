# What a study will cost, before it is run: "snakemake forecast --cores all --configfile studies/swap.yaml".


rule forecast:
    """Print forecast hours and disk of every stage, beside those of finished jobs; starts no other job."""
    log:
        f"results/{STUDY}/logs/forecast.txt",
    localrule: True
    conda:
        "../envs/train.yaml"
    params:
        settings=lambda wildcards: to_forecast(),
    script:
        "../scripts/forecast.py"
