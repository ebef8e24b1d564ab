"""What ``audit new`` writes: files that are complete as they are, to start from."""

STUDY = """# A study of minutes. audit check {file} says what is wrong, or would be made; audit run {file} makes it.
study: {name}
defaults:         # what all scenarios share; each may say otherwise
  data: {{name: digits, test_size: 197}}
  model: {{name: mlp, hidden: [64]}}
  recipe: {{epochs: 40, lr: 0.1, momentum: 0.9}}
  protocol: {{name: swap, alpha: 0.25, pairs: 2, models_per_split: 2}}
  methods:
    none: {{}}        # does nothing: what there is to find
    retrain: {{}}     # starts over without the forget set: what others are held against
    finetune: {{lr: 0.05, epochs: 5}}
{methods}  attacks:
    correctness: {{}} # needs no shadow models
    confidence: {{}}  # from here on: learned from the adversary's own models
    entropy: {{}}
    modified_entropy: {{}}
    shadow: {{}}      # Q over the attacks up to here is the paper's
    random: {{}}      # control: must find nothing
{attacks}scenarios:
  clean: {{}}
  noisy: {{data: {{label_noise: 0.2}}}}   # one label in five is random, and can only be memorised
"""

METHOD = '''"""{title}: say in a sentence how it makes models forget."""

from pydantic import Field

from unlearning.bank.bank import Bank
from unlearning.bank.optim import Optimiser
from unlearning.bank.streams import Rows, Stream


class Options(Optimiser):
    """What a study may set: the optimiser's fields, and how many ``epochs``."""

    lr: float = 0.05
    epochs: int = Field(1, ge=0)


def unlearn(bank: Bank, forget: Rows, retain: Rows, options: Options) -> None:
    """Change the models of ``bank``; ``forget`` and ``retain`` are rows, int [models, samples]. Returns nothing."""
    bank.fit(Stream(retain), optimiser=options, epochs=options.epochs, purpose="unlearn")
'''

ATTACK = '''"""{title}: say in a sentence by what it knows a forgotten sample."""

import numpy as np

from unlearning.plugins.settings import Settings


class Options(Settings):
    """What a study may set: the ``share`` of the members it knows that the threshold lets pass."""

    share: float = 0.5


def score(logits, y, reference, options, rng):
    """The score, float64 [models, samples], higher = more likely forgotten, and the decision, bool.

    ``logits`` float32 [models, samples, classes] and labels ``y`` int64 [samples] or [models, samples]; ``reference``
    has logits and y of the adversary's own models, and ``member`` and ``nonmember`` bool [models, samples].
    """
    threshold = np.quantile(of_label(reference.logits, reference.y)[reference.member], 1 - options.share)
    value = of_label(logits, y)
    return value, value >= threshold


def of_label(logits, y):
    """The logit of the label."""
    label = np.broadcast_to(y, logits.shape[:2])[..., None]
    return np.take_along_axis(logits, label, axis=-1)[..., 0].astype(np.float64)
'''

MODEL = '''"""{title}: say in a sentence what the network is."""

import math

from pydantic import Field

from unlearning.plugins.settings import Settings


class Options(Settings):
    """What a study may set: ``units`` of the hidden layer."""

    units: int = Field(64, ge=1)


def build(options, shape, classes):
    """A network that maps float [n, *shape] to logits [n, classes]; ``shape`` is (64,) or (3, 32, 32), for example.

    ``head`` names its last layer. It draws no random numbers after it is built, so there is no dropout.
    """
    from torch import nn

    model = nn.Sequential(
        nn.Flatten(),
        nn.Linear(math.prod(shape), options.units),
        nn.ReLU(),
        nn.Linear(options.units, classes),
    )
    model.head = "3"
    return model
'''

DATA = '''"""{title}: say in a sentence what the samples are."""

import numpy as np

from unlearning.data import Source
from unlearning.plugins.settings import Settings


class Options(Settings):
    """What a study may set: how many ``points``."""

    points: int = 600


def load(options, root):
    """The samples ``x`` (uint8 or float32 from 0 to 1, or a table of float32), labels ``y`` int64 from 0, the ``part``
    (0 training, 1 test) and the number of classes. ``root`` is the working directory, for files to be read."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=options.points)
    x = rng.normal(y[:, None], 1.0, size=(options.points, 8)).astype(np.float32)
    return Source(x, y.astype(np.int64), np.zeros(options.points, np.uint8), 3)
'''

#: Kind → (what is written, how a study names it).
KINDS = {
    "study": (STUDY, ""),
    "method": (METHOD, "under methods: {name}: {{file: {file}}}"),
    "attack": (ATTACK, "under attacks: {name}: {{file: {file}}}"),
    "model": (MODEL, "as the model: {{name: {name}, file: {file}}}"),
    "data": (DATA, "as the data: {{name: {name}, file: {file}, test_size: 0.2}}"),
}


def named(stem: str) -> str:
    """A file's name as that of a method or a study."""
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in stem.lower()).lstrip("_") or "mine"
