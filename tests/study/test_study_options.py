"""Every option of every plug-in takes its own type and says so of any other."""

from unlearning_audit.plugins import registry
from unlearning_audit.study import reading

from study_cases import PRIVATE, changed

# ---------------------------------------------------------------- options of plug-ins


def test_private_training_may_augment():
    """A step reads one random view of each sample, of which the accountant counts one gradient."""
    (first, *_) = reading.read(changed(PRIVATE, ("defaults/recipe/augment", "crop_flip"))).scenarios
    assert (first.recipe.augment, first.recipe.dp.epsilon) == ("crop_flip", 8)


def test_only_what_means_the_same_is_converted():
    """A list for a tuple, a whole number for a real one, a number as a key."""
    config = changed(
        ("defaults/recipe", "{epochs: 9, lr: 1, schedule: multistep, milestones: [3, 6], dp: {epsilon: .inf}}"),
        ("defaults/protocol/sensitivity", "{3: 2, 8: 0.5}"),
        ("scenarios", "{1: {}, 2: {data: {size: 0.5}}, 3: {data: {size: 5}}}"),
        ("tables", ""), ("figures", ""),
    )  # fmt: skip
    first, second, third = reading.read(config).scenarios
    assert first.recipe.milestones == (3, 6)
    assert (first.recipe.lr, type(first.recipe.lr)) == (1.0, float)
    assert first.recipe.dp is None
    options = registry.options("protocols", "swap")(**first.protocol.options)
    assert options.sensitivity == {3: 2.0, 8: 0.5}
    assert registry.options("models", "mlp")(**first.model.options).hidden == (16,)
    assert (second.name, second.use.size, type(second.use.size)) == ("2", 0.5, float)
    assert (third.use.size, type(third.use.size)) == (5, int)
