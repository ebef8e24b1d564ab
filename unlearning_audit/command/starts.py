"""What ``audit new`` writes: files that are complete as they are, to start from."""

STUDY = """# A study of minutes. audit check {file} says what is wrong, or would be made; audit run {file} makes it.
study: {name}
defaults:         # what all scenarios share; each may say otherwise
  data: {data}
  model: {models}
  recipe: {{epochs: 40, lr: 0.1, momentum: 0.9}}
  protocol: {protocols}
  methods:
    none: {{}}        # does nothing: what there is to find
    retrain: {{}}     # starts over without the forget set: what others are held against
    finetune: {{lr: 0.05, epochs: 5}}
{methods}{attacks}{metrics}scenarios:
  clean: {{}}
  noisy: {{data: {{label_noise: 0.2}}}}   # one label in five is random, and can only be memorised
"""

#: The attacks of a new study, where its protocol asks any.
ATTACKS = """  attacks:
    correctness: {} # needs no shadow models
    confidence: {}  # from here on: learned from the adversary's own models
    entropy: {}
    modified_entropy: {}
    shadow: {}      # Q over the attacks up to here is the paper's
    random: {}      # control: must find nothing
"""

#: What a new study chooses, and how it names a file of one's own in its place.
CHOICES = {
    "data": "{name: digits, test_size: 197}",
    "models": "{name: mlp, hidden: [64]}",
    "protocols": "{name: swap, alpha: 0.25, pairs: 8, models_per_split: 2}",
}
OF_FILE = {
    "data": "{{name: {name}, file: {file}, test_size: 0.1}}",
    "models": "{{name: {name}, file: {file}}}",
    "protocols": "{{name: {name}, file: {file}}}",
}

METHOD = '''"""{title}: say in a sentence how it makes models forget."""

from pydantic import Field

from unlearning_audit.bank.bank import Bank
from unlearning_audit.bank.optim import Optimiser
from unlearning_audit.bank.streams import Rows, Stream


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

from unlearning_audit.plugins.settings import Settings


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

from unlearning_audit.plugins.settings import Settings


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

from unlearning_audit.data import Source
from unlearning_audit.plugins.settings import Settings


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

METRIC = '''"""{title}: say in a sentence what the number means."""

import numpy as np

from unlearning_audit import stats
from unlearning_audit.metrics import row


def rows(case, options, rng):
    """One row, the mean over models with its interval: how much surer they are of what they forgot."""
    models = case.targets
    sides = zip(models.phi, models.forget, models.heldout, strict=True)
    gaps = [np.median(phi[forget]) - np.median(phi[heldout]) for phi, forget, heldout in sides]
    return [row(estimate=stats.mean_interval(values=np.array(gaps)))]
'''

PROTOCOL = '''"""{title}: say in a sentence who sees what."""

import numpy as np
from pydantic import Field

from unlearning_audit.artifacts.arrays import Membership
from unlearning_audit.plugins.declarations import Protocol
from unlearning_audit.plugins.settings import Settings
from unlearning_audit.randomness.keyed import generator, seed_of

#: What metrics may ask for, and which options only count blocks.
PROTOCOL = Protocol(offers=("forgotten", "weights", "swapped_pairs"), counts=("pairs",))


class Options(Settings):
    """What a study may set: ``k`` samples on each of two sides, and how many ``pairs`` of models."""

    k: int = Field(50, ge=1)
    pairs: int = Field(2, ge=1)


def blocks(options):
    """How many blocks each population of models has."""
    return {{"pairs": options.pairs}}


def draw(block, population, data, options, seed):
    """The memberships of one block: one model forgets a side and never saw the other, a second the other way round."""
    train = np.flatnonzero(data.part == 0)
    if len(train) <= 2 * options.k:
        raise ValueError(f"k={{options.k}} needs more than {{2 * options.k}} training samples, found {{len(train)}}")
    order = generator(seed, "sides", block).permutation(train)
    sides, kept = order[: 2 * options.k].reshape(2, options.k), order[2 * options.k :]
    seen, forget, heldout = (np.zeros((2, len(data.y)), bool) for _ in range(3))
    for model in range(2):
        seen[model, kept] = seen[model, sides[model]] = True
        forget[model, sides[model]] = heldout[model, sides[1 - model]] = True
    return Membership(
        train=seen,
        forget=forget,
        heldout=heldout,
        seed=np.array([seed_of(seed, "model", block, model) for model in range(2)], np.int64),
        split=np.arange(2),
        block=np.full(2, block),
        shadow=np.zeros(2, bool),
    )
'''

FUNCTION = '''"""{title}: say in a sentence how it makes a model forget."""

import torch
from torch.nn.functional import cross_entropy


def unlearn(model, retain_loader, forget_loader, lr=0.01):
    """A step up on what is to be forgotten, then down on what may be kept; parameters may have other names."""
    optimiser = torch.optim.SGD(model.parameters(), lr=lr)
    for loader, sign in ((forget_loader, -1), (retain_loader, 1)):
        for x, y in loader:
            optimiser.zero_grad()
            (sign * cross_entropy(model(x), y)).backward()
            optimiser.step()
    return model
'''

READER = '''"""{title}: say in a sentence whose result files these are."""

import numpy as np

from unlearning_audit.plugins.settings import Settings
from unlearning_audit.readers import Model


class Options(Settings):
    """What ``audit try --set`` may say: the character that ``divides`` the columns of a line."""

    divides: str = ","


def files(place):
    """The result files of this format at or below ``place``, a file or a folder; tell them by what they hold."""
    paths = [place] if place.is_file() else sorted(place.rglob("*.txt"))
    return [path for path in paths if path.read_text(errors="replace").startswith("sample")]


def read(paths, options, root):
    """A model for each file. After a first line of heads come sample, side (forget or heldout) and score (higher = more
    like a member). Raises ValueError that names the file and the line."""
    models = []
    for path in paths:
        ids, sides, scores = [], [], []
        for number, line in enumerate(path.read_text("utf-8").splitlines()[1:], start=2):
            try:
                sample, side, score = line.split(options.divides)
                scores.append(float(score))
            except ValueError:
                raise ValueError(f"{{path}}: line {{number}} is not sample, side, score") from None
            ids.append(sample)
            sides.append(side.strip())
        forget = np.array(sides) == "forget"
        # "none": before unlearning, "retrain": never saw the forget set; any other is a method's name.
        role = path.stem if path.stem in ("none", "retrain") else "unlearned"
        method = path.stem if role == "unlearned" else ""
        columns = {{"score": np.array(scores)}}
        models.append(Model(path, role, method=method, ids=tuple(ids), forget=forget, heldout=~forget, scores=columns))
    return models
'''

#: Kind → (what is written, how a study names it).
KINDS = {
    "study": (STUDY, ""),
    "method": (METHOD, "under methods: {name}: {{file: {file}}}"),
    "function": (FUNCTION, "under methods: {name}: {{file: {file}}}"),
    "metric": (METRIC, "under metrics: {name}: {{file: {file}}}"),
    "protocol": (PROTOCOL, "as the protocol: {{name: {name}, file: {file}}}"),
    "attack": (ATTACK, "under attacks: {name}: {{file: {file}}}"),
    "model": (MODEL, "as the model: {{name: {name}, file: {file}}}"),
    "data": (DATA, "as the data: {{name: {name}, file: {file}, test_size: 0.2}}"),
    "reader": (READER, ""),
}
