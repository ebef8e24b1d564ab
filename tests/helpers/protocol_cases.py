"""Samples and draws that tests of protocols share."""

import numpy as np
from unlearning_audit.evaluation.arrays import Data, Membership
from unlearning_audit.plugins import registry

PROTOCOLS = [name for name in registry.names("protocols") if name != "external"]  # which draws nothing


def samples(n=200, classes=10, test=40, seed=0) -> Data:
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(n) % classes, np.zeros(test, int)]
    y[n:] = rng.integers(classes, size=test)
    order = rng.permutation(n + test)  # test samples lie anywhere
    part = np.r_[np.zeros(n, np.uint8), np.ones(test, np.uint8)][order]
    return Data(np.zeros((n + test, 1), np.float32), y[order], part, y[order], np.arange(n + test), classes)


#: What a protocol needs to fit the samples above.
CHOSEN = {"one_run": {"canaries": 40}, "ruli": {"target_size": 30}}


def options_of(name, **fields):
    return registry.options("protocols", name)(**{**CHOSEN.get(name, {}), **fields})


def populations(name):
    return list(registry.load("protocols", name).blocks(options_of(name)))


def block_of(name, block=0, data=None, seed=0, population=None, selection=None, **fields) -> Membership:
    data, more = samples() if data is None else data, () if selection is None else (selection,)
    options, population = options_of(name, **fields), population or populations(name)[0]
    return registry.load("protocols", name).draw(block, population, data, options, seed, *more)


def assert_equal(first: Membership, second: Membership):
    for field, value in vars(first).items():
        np.testing.assert_array_equal(value, getattr(second, field), err_msg=field)
