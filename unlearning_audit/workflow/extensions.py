"""Find earlier verdicts on fewer pairs of the same draws: the study was then extended after they could be seen."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from unlearning_audit.stats import looks
from unlearning_audit.store.files import read_json
from unlearning_audit.workflow import compared
from unlearning_audit.workflow.nodes import ROOT, Comparison, Plan

#: Population → a text that identifies its draws, and the blocks that were evaluated. A block is what a study grows by:
#: models that are drawn together, such as a swapped pair.
Draws = dict[str, tuple[str, frozenset[int]]]


def level(plan: Plan, pairs: int | None) -> float:
    """Return the significance level of the tests behind verdicts.

    A study that grows may plan looks: numbers of pairs at which its verdicts are read. The level of a look is then its
    part of α (`stats.looks`). Without planned looks or without pairs, the level is α. If the family of tests is the
    whole study, the level is divided by the number of scenarios (Bonferroni).

    Parameters
    ----------
    pairs
        How many pairs of models the verdicts are on; None for a protocol without pairs.
    """
    planned, alpha = plan.study.looks, looks.ALPHA
    if planned and pairs is not None:
        alpha = looks.levels(looks=planned)[planned.index(pairs)]
    return alpha / plan.study.tests  # the number of scenarios in the family of tests, 1 if each is its own


def unplanned(plan: Plan, comparison: Comparison) -> dict[str, Any]:
    """Describe how a comparison was extended without a plan; {} if it was not.

    A comparison counts as extended if results hold earlier verdicts on the same draws but fewer blocks, and such an
    early look is not among the study's planned ones (its field ``looks``). Draws are the same if data, protocol with
    its options, seed, model and recipe are equal; methods, attacks and code may differ. Comparisons of the present plan
    do not count. Results that cannot be read are ignored, and deleted ones cannot be found.

    Returns ``unit``, the population with fewer blocks; ``from``, the earlier numbers of blocks; and ``to``, the present
    one. If only some of the scenario's methods have earlier verdicts, ``methods`` lists the ones that have.
    """
    nodes = plan.nodes["comparisons"]
    node = nodes[Path(comparison.outputs["spec"]).parent.name]
    former = [name for name in plan.folders("comparisons").get(node.label, []) if name not in nodes]
    planned = _draws(compared.origins(node)) if former else {}
    sizes: dict[str, set[int]] = {}  # population → its numbers of blocks in earlier comparisons
    judged: set[str] = set()  # methods with earlier verdicts
    for name in former:
        try:
            earlier, methods, alpha = _recorded(Path(ROOT, "comparisons", name).absolute())
        except (ValueError, LookupError, TypeError, OSError, StopIteration):
            continue  # half a folder, or one of another version
        population = _grown(earlier, planned)
        methods = methods & comparison.scenario.methods.keys()
        if population and methods:
            size = len(earlier[population][1])  # an entry is (draws, blocks)
            # An earlier verdict was planned if the study plans verdicts at this number of pairs, at the level it had.
            # Only pairs can be planned to grow.
            if population != "pairs" or size not in plan.study.looks or abs(alpha - level(plan, size)) >= 1e-12:
                sizes.setdefault(population, set()).add(size)
                judged |= methods
    if not sizes:
        return {}
    population = min(sizes)  # if several populations grew, naming one is enough
    _, blocks = planned[population]
    some = {} if judged >= comparison.scenario.methods.keys() else {"methods": sorted(judged)}
    return {"unit": population, "from": sorted(sizes[population]), "to": len(blocks), **some}


def _grown(earlier: Draws, planned: Draws) -> str:
    """Return the population that had fewer blocks in the ``earlier`` comparison than is ``planned``.

    If several populations have grown, the first is returned. Returns "" if none has grown, if an earlier block is not
    planned any more, or if the draws differ.
    """
    if earlier.keys() != planned.keys():
        return ""
    grown = ""
    for population, (draws, blocks) in planned.items():
        earlier_draws, earlier_blocks = earlier[population]
        if earlier_draws != draws or not earlier_blocks <= blocks:
            return ""
        if earlier_blocks < blocks:
            grown = grown or population
    return grown


@cache
def _recorded(folder: Path) -> tuple[Draws, set[str], float]:
    """Return the draws of each population, the methods and the level α of the earlier comparison in this absolute
    ``folder``. Raises ValueError, LookupError, TypeError, OSError or StopIteration for a comparison that is damaged or
    of another version."""
    settings = read_json(folder / "spec.json")["settings"]
    return _draws(compared.recorded(folder)), set(settings["methods"]), settings.get("alpha", looks.ALPHA)


def _draws(origins: compared.Origins) -> Draws:
    """Return the `Draws` of a comparison that comes from ``origins``: for each population, the text that identifies its
    draws, and the numbers of the blocks in all its batches. {} for imported models."""
    populations: dict[str, tuple[str, frozenset[int]]] = {}
    for split in origins["splits"]:
        draw = {name: value for name, value in split.items() if name != "blocks"}
        # A scenario has one job of data. Its trainings are equal but for what they are trained on, so that the first
        # stands for all.
        identity = json.dumps([origins["data"][0], draw, origins["train"][0]], sort_keys=True)
        _, blocks = populations.get(split["population"], ("", frozenset()))  # those of the batches before this one
        populations[split["population"]] = identity, blocks | frozenset(split["blocks"])
    return populations
