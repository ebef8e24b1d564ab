"""Result files of other people's tools, written in their true formats from models of known answers."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas
from scipy import stats
from sklearn.metrics import roc_auc_score
from unlearning_audit import readers
from unlearning_audit.evaluation.published import Published
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.metrics import published as metric

SAMPLES = 60


def entry(values: np.ndarray, key: str = "score", aggregate: float | None = None, **more: list) -> dict:
    """One metric of an OpenUnlearning log."""
    rows = {str(i): {key: float(v), **{k: w[i] for k, w in more.items()}} for i, v in enumerate(values)}
    return {"agg_value": float(np.mean(values)) if aggregate is None else aggregate, "value_by_index": rows}


def attack(member: np.ndarray, nonmember: np.ndarray) -> dict:
    """One attack of an OpenUnlearning log: loss-like scores of both sides."""
    value = float(roc_auc_score([0] * len(member) + [1] * len(nonmember), [*member, *nonmember]))
    return {"forget": entry(member), "holdout": entry(nonmember), "auc": value, "agg_value": value}


def openunlearning(seed: int, memory: float, samples: int = SAMPLES, name: str = "q") -> dict:
    """A log of a model that remembers what it was to forget by ``memory`` standard deviations of the loss."""
    rng = np.random.default_rng(seed)
    loss = rng.normal(3, 1, samples) - memory
    holdout = np.random.default_rng(99).normal(2.5, 1, samples)
    chance = np.exp(-np.clip(loss, 0.01, None))
    texts = [f"answer {name} {i}" for i in range(samples)]
    wrong, right = rng.uniform(2, 3, samples), np.clip(loss, 0.01, None)
    ratio = np.exp(right - wrong)
    log = {
        "forget_Q_A_Prob": entry(chance, "prob", avg_loss=(-np.log(chance)).tolist()),
        "forget_Q_A_ROUGE": entry(chance**0.5, "rougeL_recall", ground_truth=texts, generation=texts),
        "forget_truth_ratio": entry(ratio, aggregate=float(np.minimum(ratio, 1 / (ratio + 1e-10)).mean())),
        "exact_memorization": entry(chance),
        "mia_loss": attack(loss, holdout),
        "mia_min_k": attack(loss + rng.normal(0, 0.1, samples), holdout),
        "forget_quality": {"agg_value": None},
    }
    probabilities = rng.uniform(0.7, 0.9, samples)
    for part in ("retain", "ra", "wf"):
        probability = "Q_A_Prob" if part == "retain" else "Q_A_Prob_normalised"
        log[f"{part}_{probability}"] = entry(probabilities, "prob")
        log[f"{part}_Q_A_ROUGE"] = entry(
            probabilities, "rougeL_recall", ground_truth=[f"{part} {i}" for i in range(samples)]
        )
        log[f"{part}_Truth_Ratio"] = entry(1 - probabilities, aggregate=float(probabilities.mean()))
    means = [value["agg_value"] for key, value in log.items() if key.split("_")[0] in ("retain", "ra", "wf")]
    log["model_utility"] = {"agg_value": float(stats.hmean(means))}
    return log


def write_log(path: Path, log: dict, summary: bool = True) -> Path:
    """The log as its tool writes it, with its summary."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(dict(sorted(log.items())), indent=4))
    if summary:
        short = {name: value["agg_value"] for name, value in log.items() if value["agg_value"] is not None}
        path.with_name(path.name.replace("EVAL", "SUMMARY")).write_text(json.dumps(short, indent=4))
    return path


def write_logs(folder: Path, **models: tuple) -> list[Path]:
    """Logs of models, name of the folder → what `openunlearning` takes."""
    return [write_log(folder / name / "TOFU_EVAL.json", openunlearning(*log)) for name, log in models.items()]


def save(folder: Path, **arrays: np.ndarray) -> None:
    """Arrays by name, which may have folders in it."""
    for name, array in arrays.items():
        path = folder / f"{name}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, array)


def write_config(folder: Path, text: str) -> None:
    """The configuration of a run that wrote a log into the folder."""
    (folder / ".hydra").mkdir()
    (folder / ".hydra/config.yaml").write_text(text)


def shape(group: readers.Group) -> tuple[int, int, dict[str, int]]:
    """How many models before unlearning, how many retrained ones, and how many models of each method there are."""
    methods = {name: len(models) for name, models in group.methods.items()}
    return len(group.none), len(group.retrain) + len(group.control), methods


def evaluation(published: Published) -> SimpleNamespace:
    """What metrics of published numbers read of an evaluation."""
    return SimpleNamespace(published=published)


def rows_of(published: Published) -> list[Row]:
    """The rows that published numbers give."""
    return metric.rows(evaluation(published), metric.Options())


def checks(imported: readers.Imported) -> list[readers.Agreement]:
    """The printed numbers of all files."""
    return [agreement for agreements in imported.agreements.values() for agreement in agreements]


def against(log: dict, retrained: dict) -> dict:
    """The log with what its tool computes from that of a retrained model."""
    ratios = [
        [row["score"] for row in source["forget_truth_ratio"]["value_by_index"].values()] for source in (log, retrained)
    ]
    leak, reference = 1 - log["mia_min_k"]["agg_value"], 1 - retrained["mia_min_k"]["agg_value"]
    return log | {
        "forget_quality": {"agg_value": float(stats.ks_2samp(*ratios).pvalue)},
        "privleak": {"agg_value": (leak - reference) / (reference + 1e-10) * 100},
    }


def tofu(seed: int, memory: float, samples: int = SAMPLES) -> dict:
    """An aggregated log of TOFU's own code."""
    rng = np.random.default_rng(seed)

    def split(count: int, shift: float, name: str) -> dict:
        tokens = rng.integers(5, 30, count)
        loss = np.clip(rng.normal(2.5, 0.8, count) - shift, 0.02, None)
        right, wrong = loss + 0.1, rng.uniform(2, 3, (count, 3))
        columns = {
            "avg_gt_loss": loss, "gt_loss": loss * tokens, "num_token_gt": tokens, "avg_paraphrased_loss": right,
            "average_perturb_loss": wrong, "truth_ratio": np.exp(right - wrong.mean(1)),
            "rougeL_recall": rng.uniform(0, 1, count),
        }  # fmt: skip
        rows = {key: {str(i): value.tolist() for i, value in enumerate(column)} for key, column in columns.items()}
        rows["generated_text"] = {str(i): [f"Q {name} {i}", "said", f"A {name} {i}"] for i in range(count)}
        if "real" in name:
            likely = np.exp(-loss)
            share = likely / (likely + np.exp(-wrong).sum(1))
            rows["normalized_gt_loss"] = {str(i): float(-np.log(probability)) for i, probability in enumerate(share)}
        return rows

    return {
        "eval_log.json": split(samples, 2.0, "retain"),
        "eval_real_author_wo_options.json": split(30, 0.5, "real_author"),
        "eval_real_world_wo_options.json": split(30, 0.5, "real_world"),
        "eval_log_forget.json": split(samples, memory, "forget"),
    }


def tree(root: Path, steps: tuple[int, ...] = (), architecture: str = "Tiny-1B") -> Path:
    """Logs of a model before unlearning, of one retrained without its forget set, and of checkpoints of NPO."""
    retrained = openunlearning(2, 0.0)
    write_log(root / f"saves/eval/tofu_{architecture}_retain90/TOFU_EVAL.json", retrained)
    full = against(openunlearning(1, 2.5), retrained)
    write_log(root / f"saves/eval/tofu_{architecture}_full/evals_forget10/TOFU_EVAL.json", full)
    for step in steps:
        log = against(openunlearning(10 + step, 2.5 / (1 + step / 10)), retrained)
        folder = root / f"saves/unlearn/tofu_{architecture}_forget10_NPO/checkpoint-{step}/evals"
        write_log(folder / "TOFU_EVAL.json", log)
    return root


def klom(unlearned: np.ndarray, oracle: np.ndarray) -> float:
    """EasyDUB's divergence of one sample's margins [models], in twenty bins."""
    low, high = min(unlearned.min(), oracle.min()), max(unlearned.max(), oracle.max())
    edges = np.linspace(low, high, 21)
    p, q = (np.array([(np.digitize(side, edges) == i).sum() for i in range(1, 21)]) for side in (unlearned, oracle))
    p, q = p / p.sum(), q / q.sum()
    return float(sum(a * np.log(a / max(b, 1e-5)) for a, b in zip(p, q, strict=True) if a > 0))


def easydub(root: Path, sets: tuple[int, ...] = (2,), models: int = 8, epochs: int = 3) -> Path:
    """Margins of EasyDUB for some forget sets, and in results/ what its reproduce.py writes for the last of these."""
    rng = np.random.default_rng(5)
    sizes, parts = {"retain": 250, "forget": 50, "val": 80}, ("retain", "forget", "val")
    base = root / "data/margins/cifar10"

    def margins(level: float) -> dict[str, np.ndarray]:
        levels = {"retain": 4, "forget": level, "val": 2}
        return {part: rng.normal(levels[part], 1, (models, sizes[part])).astype(np.float32) for part in parts}

    for number in sets:
        oracle, before = margins(2), margins(4)
        for model in range(models):
            for part in parts:
                place = f"pretrain/forget_{number}" if part == "forget" else f"pretrain/{part}"
                for folder, value in ((f"oracle/forget_{number}/{part}", oracle), (place, before)):
                    save(base / folder, **{f"resnet9/id_{model}_epoch_23": value[part][model]})
    steps = [margins(2 - (epochs - 1 - epoch)) for epoch in range(epochs)]
    content = {f"margins_{part}": np.stack([step[part] for step in steps]) for part in parts}
    for part in parts:
        values = [[klom(step[part][:, i], oracle[part][:, i]) for i in range(sizes[part])] for step in steps]
        content |= {f"klom_mean_{part}": np.mean(values, 1), f"klom_p95_{part}": np.percentile(values, 95, axis=1),
                    f"klom_p05_{part}": np.percentile(values, 5, axis=1)}  # fmt: skip
    (root / "results").mkdir()
    np.savez(root / "results/ns0.0_seed0.npz", **content)
    return root


def table(rng, shift, **columns):
    """Losses of a model that remembers what it was to forget by ``shift``, and what else its rows say."""
    side = np.repeat(["forget", "heldout", "retain"], 40)
    loss = rng.gamma(2, 1, 120) - shift * (side == "forget")
    return pandas.DataFrame({"sample": np.arange(120), "side": side, "loss": loss, **columns})


def study_table(seeds=3, kinds=("full", "retrained", "unlearned"), **columns):
    """Losses of a model before unlearning, of some retrained ones and of one that was unlearned by npo."""
    rng = np.random.default_rng(13)
    parts = {
        "full": [table(rng, 2, kind=kinds[0], method="", seed=0)],
        "retrained": [table(rng, 0, kind=kinds[1], method="", seed=seed) for seed in range(seeds)],
        "unlearned": [table(rng, 1, kind=kinds[2], method="npo", seed=0)],
    }
    return pandas.concat([frame for frames in parts.values() for frame in frames]).assign(**columns)


def read_one(path, frame, **options):
    """The only group of a table."""
    frame.to_csv(path, index=False)
    (group,) = readers.imported([path], **options).groups
    return group


def write_three(folder):
    """Files of three models in csv: the models of a study that compares them."""
    frames = three(folder)
    for path, frame in frames.items():
        frame.to_csv(path, index=False)
    return frames


def three(folder, suffix=".csv"):
    """Files of three models, as a study compares them: name → losses."""
    rng = np.random.default_rng(32)
    return {
        folder / f"{name}{suffix}": table(rng, memory) for name, memory in (("full", 2), ("retrain", 0), ("npo", 1))
    }
