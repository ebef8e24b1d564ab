"""What attacks cost here and in the peers' public code, on identical arrays, in one run on one core.

    python tests/benchmarks/peers.py --sources FOLDER [--models 64] [--samples 10000] [--repeats 3]

FOLDER holds check-outs of the peers' repositories, each under its name: ``privacy`` (tensorflow/privacy), ``LeakPro``
(aidotse), ``PrivacyGuard`` (facebookresearch), ``ml_privacy_meter`` (privacytrustlab); those that are not there are
left out. Of each, the file of the attack is run as it is, without the rest of its package; of LeakPro, the names
that the attack imports only to train or to report are empty. Each way runs in a process of its own, and all take turns;
time is the processor's, memory what the process takes beyond the arrays. TensorFlow Privacy and LeakPro start from
logits, as the attacks here do; PrivacyGuard and Privacy Meter from the probability of the label, which is not counted.
Prints the median over repeats with the smallest and largest value.
"""

import argparse
import ctypes
import importlib
import json
import os
import subprocess
import sys
import time
import types
from pathlib import Path

import numpy as np

CLASSES, A, GAMMA = 10, 0.3, 2.0


class Arrays:
    """Logits float32 [models, samples, classes] of reference models, each trained on half of the samples, and of the
    audited one [samples, classes]; labels ``y`` int64 [samples]; ``member`` bool [models, samples]; ``p``, the
    probability of the label, float64."""

    def __init__(self, models: int, samples: int) -> None:
        rng = np.random.default_rng(0)
        self.y = rng.integers(0, CLASSES, samples)
        self.member = rng.permuted(np.arange(models)[:, None].repeat(samples, 1) % 2 == 0, axis=0)
        self.logits = rng.standard_normal((models, samples, CLASSES), dtype=np.float32)
        self.target = rng.standard_normal((samples, CLASSES), dtype=np.float32)
        at = np.arange(samples)
        self.logits[:, at, self.y] += 2 + self.member
        self.target[at, self.y] += 2 + (at % 2)
        odds = [np.exp(z - z.max(-1, keepdims=True)) for z in (*self.logits, self.target)]
        *p, self.p_target = (z[at, self.y] / z.sum(-1, dtype=np.float64) for z in odds)
        self.p = np.array(p)


def package(name: str, folder: Path) -> None:
    """A package of which modules are found in ``folder``, without running its ``__init__``."""
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [str(folder)]


def library_way(attack: str, **options):
    from unlearning_audit.evaluation.shadow import Shadow

    module = importlib.import_module(f"unlearning_audit.attacks.{attack}")

    def run(arrays: Arrays) -> np.ndarray:
        shadow = Shadow(arrays.logits, arrays.y, arrays.member, ~arrays.member)
        return module.score(arrays.target[None], arrays.y, shadow, module.Options(**options))[0][0]

    return run


def tensorflow(folder: Path, mode: str):
    name = "tensorflow_privacy.privacy.privacy_tests"
    for part in ("tensorflow_privacy", "tensorflow_privacy.privacy", name, f"{name}.membership_inference_attack"):
        package(part, folder / part.replace(".", "/"))
    module = importlib.import_module(f"{name}.membership_inference_attack.advanced_mia")

    def run(arrays: Arrays) -> np.ndarray:
        *pool, target = (module.calculate_statistic(z, arrays.y) for z in (*arrays.logits, arrays.target))
        pool, columns = np.array(pool)[..., None], range(len(arrays.y))
        inside = [pool[arrays.member[:, j], j] for j in columns]
        outside = [pool[~arrays.member[:, j], j] for j in columns]
        option = "both" if mode == "online" else "out"
        return -module.compute_score_lira(target[:, None], inside, outside, option=option)

    return run


def leakpro(folder: Path, attack: str, mode: str):
    """The attack's methods over an object that has read its models' logits."""
    for part in ("leakpro", "leakpro.attacks", "leakpro.attacks.mia_attacks", "leakpro.attacks.utils"):
        package(part, folder / part.replace(".", "/"))
    for part, names in {
        "attacks.mia_attacks.abstract_mia": ["AbstractMIA"],
        "attacks.utils.shadow_model_handler": ["ShadowModelHandler"],
        "input_handler.mia_handler": ["MIAHandler"],
        "reporting.mia_result": ["MIAResult"],
        "signals.signal": ["ModelLogits"],
        "signals.signal_extractor": ["PytorchModel"],
        "utils.import_helper": ["Self"],
        "utils.logger": ["logger"],
    }.items():
        module = sys.modules[f"leakpro.{part}"] = types.ModuleType(f"leakpro.{part}")
        for name in names:
            setattr(module, name, type(name, (), {"info": staticmethod(str), "from_full_scores": staticmethod(dict)}))
    module = importlib.import_module(f"leakpro.attacks.mia_attacks.{attack}")
    kind = module.AttackLiRA if attack == "lira" else module.AttackRMIA

    def run(arrays: Arrays) -> np.ndarray:
        audit, samples = kind.__new__(kind), len(arrays.y)
        audit.configs = kind.AttackConfig(num_shadow_models=len(arrays.logits), online=mode == "online")
        for key, value in audit.configs.model_dump().items():
            setattr(audit, key, value)
        audit.audit_dataset = {"in_members": np.arange(samples), "out_members": np.arange(0)}
        audit.out_indices = ~arrays.member
        if attack == "lira":
            audit.fix_var_threshold = 32
            audit.shadow_models_logits = np.array([audit.rescale_logits(z, arrays.y) for z in arrays.logits])
            audit.target_logits = audit.rescale_logits(arrays.target, arrays.y)
            return audit.run_attack()["signal_values"][:, 0]
        audit.temperature, audit.offline_a, audit.gamma, audit.epsilon = 1.0, A, GAMMA, 1e-6
        audit.ground_truth_indices, audit.logits_theta, audit.logits_shadow_models = (
            arrays.y, arrays.target, list(arrays.logits),
        )  # fmt: skip
        # As prepare_attack has it, with all samples as z.
        softmax, at = module.softmax_logits, np.arange(samples)
        p_z = np.mean([softmax(z)[at, arrays.y] for z in arrays.logits], axis=0)
        p_z = 0.5 * ((A + 1) * p_z + (1 - A))
        audit.ratio_z = np.atleast_2d(softmax(arrays.target)[at, arrays.y]) / (p_z + audit.epsilon)
        return audit.run_attack()["signal_values"][:, 0]

    return run


def privacy_meter(folder: Path):
    sys.path.insert(0, str(folder / "modules" / "mia" / "attacks"))
    module = importlib.import_module("rmia")

    def run(arrays: Arrays) -> np.ndarray:
        return module.run_rmia(
            arrays.p_target, arrays.p.T, arrays.member.T, arrays.p_target, arrays.p.T, A, len(arrays.p) // 2
        )

    return run


def privacy_guard(folder: Path):
    sys.path.insert(0, str(folder))
    module = importlib.import_module("privacy_guard.attacks.rmia_attack")

    def run(arrays: Arrays) -> np.ndarray:
        import pandas as pd

        columns = {"user_id": np.arange(len(arrays.y)), "score_orig": arrays.p_target}
        columns |= {f"score_ref_{m}": p for m, p in enumerate(arrays.p)}
        columns |= {f"member_ref_{m}": member for m, member in enumerate(arrays.member)}
        frame = pd.DataFrame(columns)
        half = len(frame) // 2
        kind = importlib.import_module("privacy_guard.analysis.mia.aggregate_analysis_input").AggregationType
        attack = module.RmiaAttack(
            frame[:half], frame[half:], frame, kind.NONE, num_reference_models=len(arrays.p) // 2, alpha_coefficient=A
        )
        attack.run_attack()
        return np.concatenate([attack.df_train_merge["score"], attack.df_test_merge["score"]])

    return run


#: Attack → whose code → what prepares it, from the folder of check-outs; the first of each attack is ours.
WAYS = {
    "LiRA, online": {
        "here": lambda _: library_way("lira", spread="per_sample"),
        "privacy": lambda folder: tensorflow(folder, "online"),
        "LeakPro": lambda folder: leakpro(folder, "lira", "online"),
    },
    "LiRA, offline": {
        "here": lambda _: library_way("lira", mode="offline"),
        "privacy": lambda folder: tensorflow(folder, "offline"),
        "LeakPro": lambda folder: leakpro(folder, "lira", "offline"),
    },
    "RMIA, offline": {
        "here": lambda _: library_way("rmia", mode="offline", a=A, gamma=GAMMA, beta=0.5),
        "here, threshold learned": lambda _: library_way("rmia", mode="offline", a=A, gamma=GAMMA),
        "LeakPro": lambda folder: leakpro(folder, "rmia", "offline"),
        "PrivacyGuard": privacy_guard,
        "ml_privacy_meter": privacy_meter,
    },
}


def memory(peak: str) -> float:
    """MiB that this process has (``VmRSS``) or has had at most since its peak was forgotten (``VmHWM``)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(peak)) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--models", type=int, default=64)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--way", nargs=2, metavar=("ATTACK", "WHOSE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        attack, source = options.way
        run = WAYS[attack][source](options.sources / source)
        run(Arrays(4, 20))  # imports
        arrays = Arrays(options.models, options.samples)
        ctypes.CDLL(None).malloc_trim(0)  # what making the arrays has left
        Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
        before, start = memory("VmRSS"), time.process_time()
        score = run(arrays)
        seconds, extra = time.process_time() - start, memory("VmHWM") - before
        print(json.dumps([seconds, extra, score.argsort().argsort().tolist()]))
        return
    single = os.environ | {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    for attack, ways in WAYS.items():
        ways = [source for source in ways if source.startswith("here") or (options.sources / source).is_dir()]
        values, ranks = {source: [] for source in ways}, {}
        for _ in range(options.repeats):
            for source in ways:
                command = [sys.executable, __file__, *sys.argv[1:], "--way", attack, source]
                answer = subprocess.run(command, env=single, check=True, capture_output=True, text=True).stdout
                *value, ranks[source] = json.loads(answer.splitlines()[-1])
                values[source].append(value)
        for source, value in values.items():
            seconds, extra = np.array(value).T
            alike = np.corrcoef(ranks[ways[0]], ranks[source])[0, 1]
            print(
                f"{attack:14} {source:24} {np.median(seconds):7.2f} s [{seconds.min():.2f}, {seconds.max():.2f}] "
                f"{np.median(extra):7.0f} MiB  rank correlation with the first {alike:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
