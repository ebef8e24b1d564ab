"""Let the defender's language models of one batch say by themselves what stands in the scored tokens of samples."""

from pathlib import Path

from job import script

import numpy as np
from unlearning_audit.artifacts.arrays import Data, Membership
from unlearning_audit.artifacts.generations import Generations, Sampled, queried
from unlearning_audit.bank import generation
from unlearning_audit.workflow.attempt import answered, of_model
from unlearning_audit.workflow.open_bank import device_facts, opened, targets


@script
def generate(data: str, splits: list[str], models: list[str], generations: str, settings: dict, place: dict) -> dict:
    """Greedy decoding, or as many sampled answers as the settings say; only some samples of what is kept and of the
    test part, as these say too."""
    samples, membership = Data.read(data), Membership.read(splits[0])
    count = settings.get("answers", 0)
    kind = Sampled if count else Generations
    generations = str(Path(generations).absolute())  # a model may change the folder

    def ask() -> dict:
        numbers, parts = targets(membership), []
        member = membership[numbers]
        if not len(numbers):
            kind.empty().write(generations)
            return {"models": 0, "samples": 0}
        rows = queried(member, samples.part, settings["most"])
        for part, _, bank in opened(samples, membership, settings, place, models=models[0], numbers=numbers):
            with of_model(settings, place):
                tokens = generation.sampled(bank, rows[part], count) if count else generation.greedy(bank, rows[part])
                parts.append(tokens)
        answers = np.concatenate(parts)
        longest = int((answers >= 0).sum(-1).max(initial=1))
        kind(answers[..., :longest], rows).write(generations)
        return {"models": len(member.seed), "samples": int((rows >= 0).sum()), **device_facts(bank.device)}

    return answered(ask, place, generations)
