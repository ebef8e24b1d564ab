# A rule for each stage that makes models and numbers. `scripts/` or the library's `stages/` has a file of the same name,
# which says what is made; `workflow/nodes.py` has the roles of inputs. What a job reads and writes stands in the plan;
# `{node}` is a label (data, protocol, model, blocks, method) and the key.
# Stages that score alone have an environment without torch.
SCORING = "splits", "selection", "metrics", "comparisons"


for stage, files in OUTPUTS.items():

    rule:
        """Make the files of one job of the plan by the function of this name."""
        name:
            stage
        input:
            unpack(node_field(stage, "awaited")),
        output:
            **output_files(stage, files),
        log:
            f"results/{stage}/{{node}}/log.txt",
        priority: priority(stage)
        retries: RETRIES if stage in HEAVY else None
        conda:
            f"../envs/{'score' if stage in SCORING else 'train'}.yaml"
        resources:
            **reserved(stage),
        params:
            stage=stage,
            settings=node_field(stage, "settings"),
            place=place(stage),
        script:
            "../scripts/job.py"
