"""Sizes of a study's jobs, from its data and memberships, which are read and drawn but not written."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unlearning_audit.data import Source, prepare, read_source
from unlearning_audit.evaluation.arrays import Data, Membership
from unlearning_audit.evaluation.selection import Selection
from unlearning_audit.plugins import registry


def downloaded(settings: dict[str, Any], place: dict[str, Any]) -> tuple[int, int, tuple[int, ...], int] | None:
    """The SIZE that a source of the library declares, which is downloaded: images to train on and to test with, the
    shape of one, classes. None for others."""
    if place.get("file") is not None or settings["source"] not in registry.names("data"):
        return None
    size: tuple[int, int, tuple[int, ...], int] | None = registry.constant("data", settings["source"], None, "SIZE")
    return size


class Draws:
    """Data and memberships of a study, by the names of their nodes; ``nodes`` as `forecast.nodes` gives them.

    Of memberships that differ only in block numbers, one is drawn, since all blocks have the same sizes.
    """

    def __init__(self, nodes: list[dict[str, Any]]) -> None:
        self.nodes = {node["node"]: node for node in nodes}
        self._memberships: dict[str, Membership] = {}
        self._facts: dict[str, dict[str, Any]] = {}
        self._read: tuple[str, Data] | None = None

    def data(self, name: str) -> Data:
        """The samples: from their file if it is there, else as it will be, or so many black images in place of those
        that would have to be downloaded. The last that were asked for are kept. Raises ValueError."""
        if self._read is None or self._read[0] != name:
            self._read = None
            self._read = name, self._samples(self.nodes[name])
        return self._read[1]

    def facts(self, name: str) -> dict[str, Any]:
        """Samples, classes, the shape of one sample, and bytes of the file."""
        if name not in self._facts:
            data = self.data(name)
            size = sum(value.nbytes for value in vars(data).values() if isinstance(value, np.ndarray))
            self._facts[name] = {
                "samples": len(data.y), "classes": data.classes, "shape": list(data.x.shape[1:]), "bytes": size
            }  # fmt: skip
        return self._facts[name]

    def membership(self, name: str) -> Membership:
        """Memberships of as many blocks, by the same protocol, from the same data.

        Where they need a selection, which takes trained models, every second sample is selected instead: only the
        number matters.
        """
        node = self.nodes[name]
        settings, (data,) = node["settings"], node["after"]["data"]
        blocks = settings["blocks"]
        key = json.dumps([data, {**settings, "blocks": len(blocks)}], sort_keys=True)
        if key not in self._memberships:
            protocol = registry.load("protocols", settings["protocol"], node["place"]["file"])
            options, samples = protocol.Options(**settings["options"]), self.data(data)
            selection = (every_second(len(samples.y)),) if "selection" in node["after"] else ()
            population, seed = settings["population"], settings["seed"]
            memberships = [protocol.draw(block, population, samples, options, seed, *selection) for block in blocks]
            whole = Membership.concatenate(memberships)
            if selection:
                whole = replace(whole, memorised=selection[0].ratio)
            self._memberships[key] = whole.until(settings["request"]) if "request" in settings else whole
        return self._memberships[key]

    def sizes(self, name: str) -> dict[str, Any]:
        """Models and how many of them are trained (originals), rows of a model in train and in forget, bytes."""
        membership = self.membership(name)
        return {
            "models": len(membership.seed),
            "originals": len(membership.originals()[0]),
            "train": int(membership.train[0].sum()),
            "forget": int(membership.forget[0].sum()),
            "bytes": sum(value.nbytes for value in vars(membership).values() if value is not None),
        }

    def _samples(self, node: dict[str, Any]) -> Data:
        path, settings, place = Path(node["spec"]).with_name("data.npz"), node["settings"], node["place"]
        if path.exists():
            return Data.read(path)
        if size := downloaded(settings, place):
            train, test, shape, classes = size
            count = train + test
            part = np.repeat(np.array([0, 1], np.uint8), (train, test))
            loaded = Source(np.zeros((count, *shape), np.uint8), np.arange(count) % classes, part, classes)
        else:
            loaded = read_source(settings, place, Path.cwd())
        return prepare(loaded, seed=settings["seed"], **settings["use"])


def every_second(samples: int) -> Selection:
    """A selection that calls every second sample vulnerable and the others protected."""
    odd = np.arange(samples) % 2 == 1
    return Selection(~odd, odd, np.zeros(samples))
