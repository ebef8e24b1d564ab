"""Every shipped study for large cards fits them and the main memory that it asks for, by arithmetic from a step without
numbers of the very networks."""

from pathlib import Path

import numpy as np
import pytest
import torch
from unlearning_audit.artifacts.arrays import Data
from unlearning_audit.models import _passage
from unlearning_audit.plugins import registry
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan as planning
from unlearning_audit.workflow.forecast import arithmetic, memory
from unlearning_audit.workflow.forecast.sizes import Draws

from slow_cases import slow

pytestmark = pytest.mark.slow

STUDIES = Path(__file__).parents[2] / "studies"

#: Study → shape of its data, and classes, where they are no images that are downloaded, or many.
DATA = {
    "muse": ((2100, 512), 2), "tofu": ((617, 256), 2), "ruli_text": ((17_800, 128), 2),
    "ruli_vit": ((110_000, 3, 64, 64), 200),
}  # fmt: skip

#: Study → the smallest of the named cards that holds its training, and all of it, in GB.
CARDS = {
    "muse": (40, 80), "tofu": (40, 80), "ruli_text": (24, 24), "ruli_vit": (24, 24), "ruli": (24, 24),
    "ruli_cifar100": (24, 24), "competition": (24, 24), "swap": (40, 40), "swap_grid": (24, 24),
}  # fmt: skip

#: Those with most networks, whose steps take longest to go through.
SLOWEST = ("swap_grid", "ruli_vit")

SMALL = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}


def language_model(weights, place):
    """The networks that studies name, without their numbers."""
    import transformers as t

    llama = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
             "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": True}  # fmt: skip
    pythia = {"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 6, "num_attention_heads": 8,
              "vocab_size": 50304, "tie_word_embeddings": False}  # fmt: skip
    config = {
        "meta-llama/Llama-3.2-1B": lambda: t.LlamaConfig(**llama, **SMALL),
        "meta-llama/Llama-3.2-1B-Instruct": lambda: t.LlamaConfig(**llama, **SMALL),
        "gpt2": lambda: t.GPT2Config(**SMALL),
        "EleutherAI/pythia-70m": lambda: t.GPTNeoXConfig(**pythia, **SMALL),
    }[weights]()
    with torch.device("meta"):
        return t.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")


@pytest.fixture(scope="module")
def footprints():
    """Those that were measured, by kind."""
    return {}


def rows_of(study, footprints, monkeypatch):
    """`memory.rows` of a shipped study, and the study."""
    monkeypatch.setattr(_passage, "_pretrained", language_model)
    whole = reading.read(*reading.load([STUDIES / f"{study}.yaml"]))
    nodes = arithmetic.nodes(planning.make(whole))
    if study in DATA:
        shape, classes = DATA[study]
        x = np.broadcast_to(np.int32(0) if len(shape) == 2 else np.uint8(0), shape)
        y, part = (
            np.arange(shape[0]) % classes,
            np.repeat(np.uint8([0, 1]), (shape[0] - shape[0] // 10, shape[0] // 10)),
        )
        data = Data(x, y, part, y, np.arange(shape[0]), classes)
        monkeypatch.setattr(Draws, "data", lambda self, name: data)
    draws = Draws(nodes)
    facts = {node["node"]: draws.facts(node["node"]) for node in nodes if node["stage"] == "data"}
    sizes = {node["node"]: draws.sizes(node["node"]) for node in nodes if node["stage"] == "splits"}
    for node in nodes:
        kind = memory.kind(node, facts)
        if not kind or kind in footprints:
            continue
        settings, about = node["settings"], facts[node["after"]["data"][0]]
        module = registry.load("models", settings["model"])
        options = module.Options(
            **{**settings["options"], **({"weights": "none"} if settings["model"] == "swin_s" else {})}
        )
        shape, classes = tuple(about["shape"]), about["classes"]
        footprints[kind] = memory.footprint(
            lambda m=module, o=options, s=shape, c=classes: m.build(o, s, c), shape, len(shape) == 1,
            settings["recipe"]["precision"], memory.private(node),
        )  # fmt: skip
    return memory.rows(nodes, facts, sizes, footprints), whole


@pytest.mark.parametrize("study", [study for study in CARDS if study not in SLOWEST] + slow(*SLOWEST))
def test_a_shipped_study_fits_its_cards_and_the_memory_that_it_asks_for(study, footprints, monkeypatch):
    rows, whole = rows_of(study, footprints, monkeypatch)
    stages = {stage: [row for row in rows if row["stage"] == stage] for stage in ("train", "unlearn")}
    for group, card in zip((stages["train"], rows), CARDS[study], strict=True):
        assert all(row["fits"][card] for row in group), (card, group)
        assert all(fit is None or fit.bytes <= size * memory.GB for row in group for size, fit in row["fits"].items())
        smaller = [size for size in memory.CARDS if size < card]
        assert not any(all(row["fits"][size] for row in group) for size in smaller)
    host = max(row["host"] for row in rows)
    assert host <= whole.memory * 1e6 <= 64 * memory.GB
    assert whole.memory == max(8000, memory.setting(host))
    assert (whole.keep == "logits") == (study in DATA)  # a hundred GB of weights and more
