"""Which tests read a file of the library, the quickest first."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Those with quick tests first.
ROOMS = ("stats", "protocols", "attacks", "metrics", "artifacts", "methods")
MODULES = [
    *(str(path.relative_to(ROOT / "scripts/unlearning").with_suffix(""))
      for room in ROOMS for path in sorted((ROOT / "scripts/unlearning" / room).rglob("*.py"))),
    "bank/fitting", "workflow/nodes", "workflow/plan",
]  # fmt: skip

SWAP = ("swap_game", "swap", "confusion", "accuracy")
SCORES = ("stats", "separation", "attacks_thresholds")
METHODS = ("methods_contract",)
PLAN = ("plan/test_planning", "plan/test_code", "plan/test_fields", "plan/test_selection", "forecast")

TESTS = {
    "stats/__init__": SCORES,
    "stats/crossed": (*SWAP, "stats_paired", "on_pairs", "ruli"),
    "stats/decide": ("stats_decide",),
    "stats/estimates": SCORES,
    "stats/intervals": (*SCORES, "stats_ranks", *SWAP),
    "stats/jackknife": ("competition", "stats_pseudo"),
    "stats/logits": (*SCORES, "attacks_shared"),
    "stats/one_run": ("stats_one_run",),
    "stats/paired": ("stats_paired", "stats_pseudo", "stats_decide", "stats_resolution"),
    "stats/pseudo": ("stats_pseudo",),
    "stats/rank_sets": ("stats_ranks_of_methods",),
    "stats/ranks": ("stats_ranks",),
    "stats/rates": ("accuracy", "confusion"),
    "stats/ratio": ("stats_decide", "stats_paired"),
    "stats/readings": ("separation", "ruli", "on_pairs", "conformity/test_metric_defects"),
    "stats/resolution": ("stats_resolution",),
    "stats/roc": (*SCORES, "swap"),
    "stats/separation": ("separation", "stats", "swap", "stats_paired"),
    "stats/simultaneous": ("stats_ranks_of_methods",),
    "metrics/__init__": ("accuracy", "swap", "external"),
    "metrics/_coins": ("one_run_metric",),
    "metrics/_crossfit": ("swap_game", "swap", "swap_coverage"),
    "metrics/_epsilon": ("epsilon", "competition", "conformity/test_metric_defects"),
    "metrics/_epsilon_bound": ("epsilon", "competition", "conformity/test_metric_defects"),
    "metrics/_game": ("swap_game", "swap"),
    "metrics/_one_run": ("one_run_metric",),
    "metrics/_pairs": ("on_pairs",),
    "metrics/_reference": ("reference_densities", "vulnerability", "ruli", "conformity/test_metric_defects"),
    "metrics/accuracy": ("accuracy", "external", "ruli_rows"),
    "metrics/accuracy_on_pairs": ("on_pairs",),
    "metrics/blind": ("blind", "ruli_rows", "external"),
    "metrics/competition": ("competition", "on_pairs", "external"),
    "metrics/competition_on_pairs": ("on_pairs",),
    "metrics/confusion": ("confusion",),
    "metrics/efficacy": ("efficacy", "on_pairs", "efficacy_end_to_end"),
    "metrics/efficacy_on_pairs": ("on_pairs",),
    "metrics/external": ("external",),
    "metrics/one_run": ("one_run_metric",),
    "metrics/ruli": ("ruli", "ruli_rows", "external"),
    "metrics/ruli_on_pairs": ("on_pairs",),
    "metrics/swap": ("swap", "swap_game", "external"),
    "metrics/vulnerability": ("vulnerability", "ruli_rows"),
    "attacks/__init__": ("attacks_thresholds",),
    "attacks/art": ("conformity/test_art",),
    "attacks/gradient_norm": ("attacks_gradient",),
    "attacks/lira": ("attacks_lira", "conformity/test_attack_defects"),
    "attacks/rmia": ("attacks_rmia", "conformity/test_attack_defects"),
    "attacks/shadow": ("attacks_shadow",),
    **{f"attacks/{name}": ("attacks_thresholds", "conformity/test_attack_defects")
       for name in ("confidence", "correctness", "entropy", "modified_entropy")},
    **{f"attacks/{name}": ("attacks_population",)
       for name in ("kde", "likelihood_ratio", "loss", "population", "random", "svc")},
    "methods/_labels": ("methods_teachers", *METHODS),
    "methods/amnesiac": ("methods_weights", *METHODS),
    "methods/bad_teacher": ("methods_teachers", *METHODS),
    "methods/classic": ("methods_classic", *METHODS),
    "methods/competition_first": ("methods_competition", *METHODS),
    "methods/competition_second": ("methods_competition", *METHODS),
    "methods/fisher": ("methods_weights", *METHODS),
    "methods/salun": ("methods_weights", "methods_teachers", *METHODS),
    "methods/scrub": ("methods_teachers", *METHODS),
    "methods/ssd": ("methods_weights", *METHODS),
    **{f"methods/{name}": ("methods_layers", *METHODS) for name in ("ftfinal", "retrfinal", "initial", "retrain")},
    **{f"methods/{name}": ("methods_gradient", "methods_teachers", *METHODS)
       for name in ("finetune", "ga_plus", "l1_sparse", "neggrad", "neggrad_plus", "npo", "random_label")},
    "protocols/external": ("imported", "external"),
    "protocols/lira_selection": ("ruli_protocol", "ruli_rows", "protocols"),
    "protocols/one_run": ("one_run_metric", "protocols"),
    "protocols/ruli": ("ruli_protocol", "ruli_rows", "protocols"),
    "artifacts/arrays": ("artifacts", "imported", "case", "protocols"),
    "artifacts/external": ("imported", "external"),
    "artifacts/files": ("files", "artifacts", "tables", "bank_files"),
    "artifacts/selection": ("ruli_protocol", "ruli_rows"),
    "artifacts/tables": ("tables", "case"),
    "bank/fitting": ("fitting", "bank", "lanes"),
    "workflow/nodes": PLAN,
    "workflow/plan": PLAN,
}  # fmt: skip
#: For files of a room without a line of their own.
ELSE = {
    "stats": SCORES, "metrics": ("accuracy",), "attacks": ("attacks_contract",), "methods": METHODS,
    "protocols": ("protocols",), "artifacts": ("artifacts", "files", "tables"),
}  # fmt: skip


def tests_of(module: str) -> list[str]:
    """Files of tests that exist, by path from the root; all of them read what ``module`` does."""
    names = TESTS.get(module, ELSE.get(module.split("/")[0], ()))
    paths = [f"tests/{name}.py" if "/" in name else f"tests/unit/test_{name}.py" for name in names]
    found = [path for path in paths if (ROOT / path).exists()]
    assert found, f"no tests are listed for {module}"
    return found
