from unlearning.machine import gpus

# Without a GPU here, jobs share the cores instead of waiting for one; a cluster's profile asks for its own.
GPU = min(gpus(), 1)

# As many jobs at once as there are GPUs, each on one of its own; with --resources gpu=N, N of them share evenly.
if GPU and "gpu" not in workflow.global_resources:
    workflow.register_resource("gpu", gpus())


def inputs(stage):
    """Input function of a stage: what the plan says this node is made from."""
    return lambda wildcards: PLAN.node(stage, wildcards.node).inputs


def settings(stage):
    """Everything that the stage's script may know about the study; hashed into the node's name."""
    return lambda wildcards: PLAN.node(stage, wildcards.node).settings


def place(stage):
    """Where a user's own files lie. Takes the inputs, so that Snakemake does not count it as a setting."""
    return lambda wildcards, input: PLAN.node(stage, wildcards.node).place
