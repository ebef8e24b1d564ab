"""What two attacks that are not here would find: Gaussian poisons, and probes of the last hidden layer.

Run: OMP_NUM_THREADS=1 python tests/benchmarks/beyond_logits.py [--results FOLDER]

Poisons (Pawelczyk et al. 2025): small networks learn digits to each of which noise of its own was added; the score of
a sample is the cosine between its noise and the gradient of φ at the sample without it, times √dimension, which is
N(0, 1) for a model that never saw the noise. Representations: on the finished default study in ``FOLDER``, linear
probes and linear CKA of the last hidden layer, beside φ of the same models. Prints a line for each.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from torch.nn.functional import cross_entropy

EPOCHS, SIDE, KEPT, SEEDS = 60, 160, 780, 4
LABEL = "digits-noise0.2-swap-mlp-pairs0to3"


def phi(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """z_y − log Σ_{c≠y} exp z_c of each row."""
    others = logits.scatter(1, y[:, None], -1e9)
    return logits.gather(1, y[:, None])[:, 0] - torch.logsumexp(others, 1)


def trained(x: torch.Tensor, y: torch.Tensor, members: np.ndarray, seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    network = torch.nn.Sequential(
        torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)
    )
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, EPOCHS)
    for _ in range(EPOCHS):
        for batch in np.array_split(rng.permutation(members), len(members) // 64):
            optimiser.zero_grad()
            cross_entropy(network(x[batch]), y[batch]).backward()
            optimiser.step()
        schedule.step()
    return network.double()


def poisoned(scale: float, label_noise: float, seed: int) -> dict[str, list[float]]:
    """Of models that keep the forget set and of retrained ones: AUC by poisons, AUC by φ, and the z-score of poisons of
    the forget set."""
    rng = np.random.default_rng(seed)
    x, y = load_digits(return_X_y=True)
    x = (x / 16 - (x / 16).mean(0)) / (x / 16 - (x / 16).mean(0)).std()
    wrong = rng.random(len(y)) < label_noise
    y[wrong] = rng.integers(10, size=wrong.sum())
    noise = scale * rng.standard_normal(x.shape)
    order, labels = rng.permutation(len(y)), torch.from_numpy(y)
    asked, kept = order[: 2 * SIDE], order[2 * SIDE : 2 * SIDE + KEPT]
    forgotten, found = np.arange(2 * SIDE) < SIDE, {}
    for name, members in (("none", np.r_[order[:SIDE], kept]), ("retrain", kept)):
        network = trained(torch.from_numpy((x + noise).astype(np.float32)), labels, members, seed)
        clean = torch.from_numpy(x[asked]).requires_grad_()
        (slope,) = torch.autograd.grad(phi(network(clean), labels[asked]).sum(), clean)
        slope = slope.numpy()
        score = (slope * noise[asked]).sum(1) / np.maximum(scale * np.linalg.norm(slope, axis=1), 1e-300)
        with torch.no_grad():
            confidence = phi(network(torch.from_numpy((x + noise)[asked])), labels[asked]).numpy()
        found[name] = [
            roc_auc_score(forgotten, score), roc_auc_score(forgotten, confidence),
            score[forgotten].mean() * SIDE**0.5,
        ]  # fmt: skip
    return found


def alike(left: np.ndarray, right: np.ndarray) -> float:
    """Linear CKA of two representations of the same samples [samples, features] (Kornblith et al. 2019)."""
    left, right = left - left.mean(0), right - right.mean(0)
    return float(np.linalg.norm(left.T @ right) ** 2 / np.linalg.norm(left.T @ left) / np.linalg.norm(right.T @ right))


def representations(results: Path) -> None:
    """A line for each method of the scenario without a budget."""
    trains = [path.parent for path in results.glob(f"train/{LABEL}-*/spec.json")]
    (train,) = [
        one for one in trains if json.loads((one / "spec.json").read_text())["settings"]["recipe"]["dp"] is None
    ]
    inputs = json.loads((train / "spec.json").read_text())["inputs"]
    data, member = (
        dict(np.load(results.parent / next(path for path in inputs if f"/{of}/" in path))) for of in ("data", "splits")
    )
    folders, x, y = {"none": train}, data["x"].astype(np.float64), data["y"]
    for path in results.glob(f"unlearn/{LABEL}-*/spec.json"):
        spec = json.loads(path.read_text())
        if any(train.name in one for one in spec["inputs"]):
            name = " ".join([spec["settings"]["method"], *map(str, spec["settings"]["method_options"].values())])
            folders[name + " (control)" * (name in folders)] = path.parent
    hidden = {name: layers(load_file(folder / "models.safetensors"), x) for name, folder in folders.items()}
    anew = next(name for name in folders if name.split()[0] == "retrain")
    for name, (features, logits) in hidden.items():
        lines = []
        for model in np.flatnonzero(~member["shadow"]):
            forget, held = member["forget"][model], member["heldout"][model]
            asked, kept = np.flatnonzero(forget | held), member["train"][model] & ~forget
            sides, own = forget[asked], features[model]
            beside = np.c_[own[asked] / own[asked].std(), np.eye(10)[y[asked]]]
            sided = cross_val_predict(
                LogisticRegression(C=0.1, max_iter=200), beside, sides, method="decision_function"
            )
            probe = LogisticRegression(max_iter=300).fit(own[kept], y[kept]).decision_function(own)
            confidences = [phi(torch.from_numpy(one), torch.from_numpy(y)).numpy() for one in (logits[model], probe)]
            lines.append([
                *(roc_auc_score(sides, one[asked]) for one in confidences), roc_auc_score(sides, sided),
                alike(own[forget], hidden[anew][0][model][forget]),
            ])  # fmt: skip
        print(name, "AUC by φ, by φ of a new last layer, by a probe for sides; CKA:", np.mean(lines, 0).round(3))


def layers(weights: dict[str, np.ndarray], x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The last hidden layer and the logits of perceptrons, float64 [models, samples, …]."""
    places = sorted({int(name.split(".")[0]) for name in weights})
    value = np.broadcast_to(x, (len(weights[f"{places[0]}.bias"]), *x.shape))
    for place in places:
        before = np.maximum(value, 0) if place != places[0] else value
        value = (
            before @ weights[f"{place}.weight"].swapaxes(1, 2).astype(np.float64) + weights[f"{place}.bias"][:, None]
        )
    return before, value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path)
    wanted = parser.parse_args()
    for label_noise in (0.0, 0.2):
        for scale in (0.1, 0.3, 1.0):
            runs = [poisoned(scale, label_noise, seed) for seed in range(SEEDS)]
            for name in ("none", "retrain"):
                means = np.mean([run[name] for run in runs], 0).round(3)
                print(
                    f"labels {label_noise}, poison {scale}, {name}: AUC by poison, by φ; z of poisons:",
                    means,
                    flush=True,
                )
    if wanted.results:
        representations(wanted.results)


if __name__ == "__main__":
    main()
