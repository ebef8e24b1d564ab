"""What an attack that is not here would find: Gaussian poisons.

Run: OMP_NUM_THREADS=1 python tests/benchmarks/beyond_logits.py

Poisons (Pawelczyk et al. 2025): small networks learn digits to each of which noise of its own was added; the score of
a sample is the cosine between its noise and the gradient of φ at the sample without it, times √dimension, which is
N(0, 1) for a model that never saw the noise. Prints a line for each scale of the noise, beside φ of the same models.
"""

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from torch.nn.functional import cross_entropy

EPOCHS, SIDE, KEPT, SEEDS = 60, 160, 780, 4


def phi(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """z_y − log Σ_{c≠y} exp z_c of each row."""
    rest = logits.scatter(1, y[:, None], -1e9)
    return logits.gather(1, y[:, None])[:, 0] - torch.logsumexp(rest, 1)


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
    queries, retain = order[: 2 * SIDE], order[2 * SIDE : 2 * SIDE + KEPT]
    forgotten, results = np.arange(2 * SIDE) < SIDE, {}
    for name, members in (("none", np.r_[order[:SIDE], retain]), ("retrain", retain)):
        network = trained(torch.from_numpy((x + noise).astype(np.float32)), labels, members, seed)
        clean = torch.from_numpy(x[queries]).requires_grad_()
        (slope,) = torch.autograd.grad(phi(network(clean), labels[queries]).sum(), clean)
        slope = slope.numpy()
        score = (slope * noise[queries]).sum(1) / np.maximum(scale * np.linalg.norm(slope, axis=1), 1e-300)
        with torch.no_grad():
            confidence = phi(network(torch.from_numpy((x + noise)[queries])), labels[queries]).numpy()
        results[name] = [
            roc_auc_score(forgotten, score), roc_auc_score(forgotten, confidence),
            score[forgotten].mean() * SIDE**0.5,
        ]  # fmt: skip
    return results


def main() -> None:
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


if __name__ == "__main__":
    main()
