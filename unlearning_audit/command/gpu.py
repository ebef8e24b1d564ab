"""Run ``audit gpu``: test whether this machine's GPU computes correctly."""


def run() -> int:
    """Compare computations on the GPU with the same on the processor, and print each check. Return the exit status of
    the command: 1 if a check failed, else 0.

    Raises ValueError with one sentence if there is no GPU, or if torch cannot use it.
    """
    import torch

    from unlearning_audit.training import card
    from unlearning_audit.workflow import self_test

    if card.use() != "cuda":
        raise ValueError("no GPU is visible (or UNLEARNING_DEVICE=cpu selects the processor)")
    facts = card.describe()
    # `mem_get_info` gives the free and the whole memory in bytes.
    memory = f"{torch.cuda.mem_get_info()[0] >> 20:,} of {facts['memory_mib']:,} MiB free"
    print(f"{facts['name']}, compute capability {facts['capability']}, {memory}")
    print(f"driver {facts['driver'] or 'unknown'}, CUDA {facts['cuda']}, cuDNN {facts['cudnn']}")
    checks = []
    for check in self_test.run("cuda"):
        mark = "✓" if check.passed else "✗"
        print(f"{mark} {check.name}: {check.result} ({check.seconds:.1f} s)", flush=True)
        checks.append(check)
    failed = [check for check in checks if not check.passed]
    print(f"{len(checks)} checks, {len(failed)} failed. Send these lines with a bug report.")
    return 1 if failed else 0
