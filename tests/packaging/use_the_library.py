"""Imports all rooms of the installed library that need no workflow; audits arrays and result files with them."""

import contextlib
import importlib
import pkgutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import unlearning_audit
from unlearning_audit import audit, stats
from unlearning_audit.attacks import lira, shadow, svc
from unlearning_audit.evaluation.shadow import Shadow
from unlearning_audit.metrics import competition

#: Rooms of the workflow.
WORKFLOW = {"command", "data", "methods", "models", "plugins", "signals", "training", "workflow"}

assert "site-packages" in unlearning_audit.__file__
for room in {module.name for module in pkgutil.iter_modules(unlearning_audit.__path__) if module.ispkg} - WORKFLOW:
    package = importlib.import_module(f"unlearning_audit.{room}")
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
assert not {"torch", "snakemake", "transformers"} & set(sys.modules)

rng = np.random.default_rng(1)
y = rng.integers(0, 3, 200)
member = rng.random((16, 200)) < 0.5
logits = rng.normal(size=(16, 200, 3)).astype(np.float32)
logits[np.arange(16)[:, None], np.arange(200), y] += 2.0 * member
models = Shadow(logits[4:], y, member[4:], ~member[4:])
for attack, more in ((lira, [lira.Options()]), (shadow, []), (svc, [svc.Options(), np.random.default_rng(2)])):
    score, _ = attack.score(logits[:4], y, models, *more)
    auc = stats.auc(score=score.ravel(), positive=member[:4].ravel())
    assert auc.low > 0.6, (attack.__name__, auc)

unlearned, retrained = map(competition.Models, rng.normal(size=(2, 24, 30)))
rows = competition.evaluate(unlearned=unlearned, retrained=retrained, options=competition.Options(), rng=rng)
assert any(row.metric == "forgetting_quality" and row.value > 0 for row in rows)

with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
    result = audit(target=logits, labels=y, forget=member, train=member, attacks="confidence", progress=False)
    assert (result.metrics["method"] == "mine").all()
    assert result.report("page.html").stat().st_size > 100_000

    lines = [f"{i},{'forget' if i % 2 else 'test'},{i % 7 + i % 2}" for i in range(40)]
    for name in ("full", "retrain_0", "retrain_1", "npo"):
        Path(f"{name}.csv").write_text("\n".join(["sample,side,loss", *lines]))
    command = [Path(sys.executable).with_name("audit"), "read", *(str(path) for path in Path().glob("*.csv"))]
    subprocess.run(command, check=True)
    assert Path("results/read/report.html").stat().st_size > 100_000
assert not {"torch", "snakemake", "transformers"} & set(sys.modules)

print(f"Python {sys.version.split()[0]}, numpy {np.__version__}: attacks, a metric, audit() and audit read work")
