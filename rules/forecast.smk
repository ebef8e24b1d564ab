# What a study will cost, before it is run: "snakemake forecast --cores all --configfile studies/swap.yaml".
from unlearning import forecast as forecasts


def forecast_settings():
    """All nodes, and how many jobs run at once, on how many GPUs."""
    local = workflow.local_exec
    return {
        "study": STUDY,
        "nodes": forecasts.nodes(PLAN),
        "slots": workflow.cores if local else workflow.resource_settings.nodes,
        "gpus": workflow.global_resources.get("gpu", 0) if GPU and local else 0,
    }


rule forecast:
    """Print hours and disk of every stage, beside what they took where it is done; starts no other job."""
    log:
        f"results/{STUDY}/logs/forecast.txt",
    localrule: True
    conda:
        "../envs/train.yaml"
    params:
        settings=lambda wildcards: forecast_settings(),
    script:
        "../scripts/forecast.py"
