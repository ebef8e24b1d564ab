"""What is said of files, in words of who gave arrays."""

import re
from pathlib import Path

#: The arguments that are populations of models.
POPULATIONS = ("target", "original", "retrain_control", "retrain", "shadow_original", "shadow")

#: What a message about a file says → what it says of an argument.
WORDS = (
    (r"^target: the name", "method: the name"),
    (r"this file is missing, and so is heldout\.npy; one of the two must be there", "give this or heldout"),
    (r"this file is missing, and so are models in its place .*", "must be given"),
    (r"^method: the key must be", "method: must be"),
    (r"this file is missing; save it with numpy\.save", "must be given"),
    (r"; save it with numpy\.save", ""),
    (r"for a single model save (\w+\[None\])", r"for a single model give \1"),
    (r"out of all files", "out of all arrays"),
    (r"\bsave\b", "give"),
    (r"all folders", "all populations"),
    (r"\b(\w+)\.npy\b", r"\1"),
    (r"this file", "this array"),
)


def argument(population: str, name: str) -> str:
    """What was given of a ``population`` ("" or target: the audited one) under the ``name`` of a file."""
    if population in ("", "target"):
        return "target" if name == "logits" else name
    return population if name == "logits" else f"{population}[{name!r}]"


def of_arguments(sentence: str, place: Path) -> str:
    """A sentence about the files of `audit` as one about its arguments."""

    folder = rf"(?:{re.escape(str(place))}/)?logits/"
    sentence = re.sub(
        rf"{folder}(?:(?P<population>\w+)/)?(?P<name>\w+)\.npy",
        lambda match: argument(match["population"] or "", match["name"]),
        sentence,
    )
    sentence = re.sub(rf"{folder}(\w+)(?=:)", r"\1", sentence)
    sentence = re.sub(r"^audit: scenarios\.audit\.methods\.[^:]*", "method", sentence)
    sentence = re.sub(r"^audit: (scenarios\.audit\.)?(protocol\.path: )?", "", sentence)
    for words, instead in WORDS:
        sentence = re.sub(words, instead, sentence)
    # "forget: forget has shape" says it twice.
    return re.sub(r"^(\w+): \1 ", r"\1 ", sentence)


def of_populations(sentence: str, method: str) -> str:
    """A sentence about folders of ``method`` and files in them as one about arguments."""
    sentence = re.sub(rf"\b(?:{re.escape(method)}/)?({'|'.join(POPULATIONS)})/", r"\1", sentence)
    for words, instead in WORDS:
        sentence = re.sub(words, instead, sentence)
    return sentence
