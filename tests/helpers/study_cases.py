"""What people get wrong in a study, and the sentence that says so."""

import yaml

SMALL = """
study: small
seed: 0
batch: 2
bootstrap: 200
defaults:
  data: {name: digits, test_size: 197}
  model: {name: mlp, hidden: [16]}
  recipe: {epochs: 3, lr: 0.1}
  protocol: {name: swap, alpha: 0.25, pairs: 2, models_per_split: 1}
  methods: {none: {}, retrain: {}, neggrad: {lr: 0.1}}
  attacks: {correctness: {}, confidence: {}}
scenarios:
  clean: {}
  noisy: {data: {label_noise: 0.2}}
  size: {vary: {data.size: [400, 800]}}
tables:
  one: {title: Quality, metric: q, scenarios: [clean, noisy]}
figures:
  two: {kind: axis, title: Sizes, scenarios: [size], axis: size}
"""


def changed(*edits: tuple[str, str], base: str = SMALL) -> dict:
    """``base`` with the YAML text of each edit put at its path (parts separated by /); empty text takes it out."""
    config = yaml.safe_load(base)
    for path, text in edits:
        *above, last = path.split("/")
        node = config
        for part in above:
            node = node.setdefault(part, {})
        if text:
            node[last] = yaml.safe_load(text)
        else:
            del node[last]
    return config


# fmt: off
#: path, YAML text that is put there, how the sentence begins
WRONG = [
    # the top level
    ("study", "", "study: is missing; add it"),
    ("study", "My Study", "study: must be lower-case letters, digits and underscores only, found 'My Study'"),
    ("study", "train", "study: must not be one of"),
    ("study", "2024-01-31", "study: YAML reads 2024-01-31 as a date; put it in quotes if it is text"),
    ("seed", "-1", "seed: must be at least 0, found -1"),
    ("seed", "1.5", "seed: must be a whole number, found 1.5"),
    ("seed", "1.0", "seed: must be a whole number, found 1.0; write 1"),
    ("bootstrap", "1.5e3", "bootstrap: must be a whole number, found '1.5e3', which YAML takes for text; write 1500"),
    ("defaults/recipe/lr", "-1", "defaults.recipe.lr: must be at least 0, found -1"),
    ("defaults/recipe/lr", "1e3", "defaults.recipe.lr: must be a number, found '1e3', which YAML takes for text; wri"),
    ("bootstap", "500", "bootstap: there is no such field, did you mean 'bootstrap'? (known: batch, bootstrap,"),
    ("scenarios", "{}", "scenarios: must have at least 1 item, found {}"),
    ("scenarios", "{A b: {}}", "scenarios.A b: the key must be lower-case letters, digits and underscores only, found"),
    # data
    ("defaults/data/name", "", "defaults.data.name: is missing; choose one of arrays, breast_cancer, cifar10,"),
    ("defaults/data/name", "digit", "defaults.data.name: there is no data source 'digit', did you mean 'digits'? (kno"),
    ("defaults/data/size", "1.5", "defaults.data.size: must be a whole number or at most 1, found 1.5"),
    ("defaults/data/greyscale", "both", "defaults.data.greyscale: must be true or false or 'interleaved', found 'both"),
    ("defaults/data", "{name: arrays, path: no/such.npz}", "defaults.data.path: 'no/such.npz' does not exist; give a"),
    # model
    ("defaults/model/name", "resnet", "defaults.model.name: there is no model 'resnet', did you mean 'resnet18'? (kno"),
    ("defaults/model", "{name: resnet_cifar, depth: 21}", "defaults.model.depth: depth 21 is not 6 k + 2 with k of at"),
    ("defaults/model", "{name: cnn, mean: [0.5]}", "defaults.model: mean and std must have one number each for every"),
    # recipe
    ("defaults/recipe/dp", "{epsilon: 8, sigma: 1}", "defaults.recipe.dp.sigma: there is no such field (known: delta,"),
    ("defaults/recipe/milestones", "[2]", "defaults.recipe: milestones and the schedule multistep belong together"),
    # protocol
    ("defaults/protocol/name", "swop", "defaults.protocol.name: there is no protocol 'swop', did you mean 'swap'? (kn"),
    ("defaults/protocol/sensitivity", "{x: 1}", "defaults.protocol.sensitivity.x: the key must be a whole number, fou"),
    ("defaults/protocol/shadow_models_per_split", "0", "scenarios.clean.protocol.shadow_models_per_split: must be at"),
    # methods and attacks
    ("defaults/methods", "retrain", "defaults.methods: must list names or map names to options, found 'retrain'"),
    ("defaults/methods", "[none, {neggrad: {}}]", "defaults.methods.1: must be a name, found a mapping; use a mapping"),
    ("defaults/methods/fintune", "{}", "defaults.methods.fintune: there is no method 'fintune', did you mean 'finetun"),
    ("defaults/methods/retrain_control", "{name: retrain}", "defaults.methods.retrain_control: is made by the study i"),
    ("defaults/methods/amnesiac", "{}", "scenarios.clean.recipe.record_updates: must be true for the method 'amnesiac"),
    ("defaults/attacks", "{}", "scenarios.clean.attacks: must name at least one attack for the protocol 'swap', found"),
    ("defaults/attacks/rmia", "{beta: 2}", "defaults.attacks.rmia.beta: must be 'learned' or at most 1, found 2"),
    # axes
    ("scenarios/size/vary", "[1]", "scenarios.size.vary: must map axes to their values, found [1]"),
    ("scenarios/size/vary", "{data.size: []}", "scenarios.size.vary.data.size: must list values of the field, or map"),
    ("scenarios/size/vary", "{data.size: [{a: 1}]}", "scenarios.size.vary.data.size: lists a mapping; map a label to"),
    ("scenarios/size/vary", "{methods.scrub.lr: [0.1]}", "scenarios.size.vary.methods.scrub.lr: there is no 'scrub' a"),
    ("scenarios/size/vary", "{recipe.lr: [0.1, 0.10000001]}", "scenarios.size.vary.recipe.lr: has two values with the"),
    ("scenarios/size/vary", "{recipe.lr: [0.2], methods.neggrad.lr: [0.3]}", "scenarios.size.vary.methods.neggrad.lr:"),
    ("scenarios/size/vary", "{size: {a;b: {}}}", "scenarios.size.vary.size: cannot have the label 'a;b'; use text"),
    # tables and figures
    ("tables/one/metric", "qq", "tables.one.metric: there is no metric 'qq' in these scenarios, did you mean 'q'? (kn"),
    ("tables/one/scenarios", "[cleen]", "tables.one.scenarios: there is no scenario 'cleen', did you mean 'clean'? (k"),
    ("tables/one/attack", "confidence", "tables.one.attack: must be confidence/ and one of trained, unlearned, both"),
    ("tables/one/published", "table 1", "tables.one.published: must be a paper and a table of it, such as swap/table_"),
    ("tables/headline", "{title: x, metric: q, scenarios: [clean]}", "tables.headline: must have another name; every"),
    ("figures/two/axis", "", "figures.two.axis: is missing; name one of size"),
    ("figures/two", "{kind: axis, title: a, scenarios: [clean]}", "figures.two.axis: is missing; these scenarios have"),
    ("figures/two/kind", "quality", "figures.two.axis: has no effect with the kind quality; leave it out"),
    ("figures/two", "{kind: phi, title: a, scenarios: [clean], attack: adaptive}", "figures.two.attack: has no effect"),
]

PRIVATE = ("defaults/recipe/dp", "{epsilon: 8}")

#: several edits, how the sentence begins
CONTRADICTORY = [
    ([PRIVATE, ("defaults/recipe/record_updates", "true")], "defaults.recipe: record_updates True cannot be combined"),
    ([("scenarios/size/vary", "{recipe.dp.epsilon: [8, .inf]}"), ("defaults/model", "{name: cnn}")],
     "scenarios.size.model.norm: must not be batch with recipe.dp, which clips samples one by one; use"),
    ([("defaults/protocol", "{name: interclass_confusion}")],
     "scenarios.clean.attacks: must be [] for the protocol 'interclass_confusion', "),
    ([("defaults/protocol", "{name: interclass_confusion, classes: [3, 3]}")],
     "defaults.protocol.classes: must be the numbers of two different classes, from 0, found [3, 3]"),
]
# fmt: on
