"""Which tests read a file of the library, the quickest first."""

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Those with quick tests first.
ROOMS = ("stats", "protocols", "attacks", "metrics", "artifacts", "methods")
MODULES = [
    *(str(path.relative_to(ROOT / "unlearning_audit").with_suffix(""))
      for room in ROOMS for path in sorted((ROOT / "unlearning_audit" / room).rglob("*.py"))),
    "bank/fitting", "workflow/nodes", "workflow/plan", "workflow/plan_external", "workflow/plan_models",
    "workflow/plan_scenario", "adversary/external_case",
]  # fmt: skip

SWAP = ("swap_game", "swap", "confusion", "accuracy")
SCORES = ("stats_intervals", "stats", "separation", "attacks_thresholds")
TEXT = ("methods_text",)
PLAN = tuple(f"plan/test_{name}" for name in (
    "nodes", "limits", "growing", "selection", "text", "fields", "options", "sequences", "code", "planning",
    "tune_plan",
))  # fmt: skip

TESTS = {
    "stats/__init__": SCORES,
    "stats/alignment": ("stats_alignment",),
    "stats/average": ("standings",),
    "stats/best_of": ("best_of", "answer_rows"),
    "stats/crossed": ("stats_crossed", *SWAP, "stats_paired", "on_pairs", "ruli"),
    "stats/decide": ("stats_decide_by_hand", "stats_decide"),
    "stats/estimates": SCORES,
    "stats/gaps": ("stats_gaps",),
    "stats/intervals": (*SCORES, "stats_klom", "stats_ranks", *SWAP),
    "stats/jackknife": ("stats_jackknife", "competition", "stats_pseudo"),
    "stats/kernel": ("kernel",),
    "stats/klom": ("stats_klom",),
    "stats/levels": ("stats_rates", "levels", "text_metrics"),
    "stats/logits": (*SCORES, "attacks_shared", "broken_models"),
    "stats/looks": ("stats_looks",),
    "stats/one_run": ("stats_one_run_by_hand", "stats_one_run"),
    "stats/paired": ("stats_distances", "stats_paired", "stats_pseudo", "stats_decide", "stats_resolution"),
    "stats/pseudo": ("stats_jackknife", "stats_pseudo"),
    "stats/rank_sets": ("stats_ranks_by_hand", "stats_ranks_of_methods"),
    "stats/ranks": ("stats_ranks_by_hand", "stats_ranks"),
    "stats/rates": ("stats_rates", "accuracy", "confusion"),
    "stats/ratio": ("stats_decide_by_hand", "stats_decide", "stats_paired"),
    "stats/readings": ("stats_readings", "separation", "ruli", "on_pairs", "conformity/test_metric_defects"),
    "stats/records": ("stats_records", "records_recognised", "records_whole"),
    "stats/resolution": ("stats_resolution_by_hand", "stats_resolution"),
    "stats/roc": (*SCORES, "swap"),
    "stats/separation": ("stats_readings", "separation", "stats", "swap", "stats_paired"),
    "stats/simultaneous": ("stats_ranks_by_hand", "stats_ranks_of_methods"),
    "stats/tail": ("stats_tail",),
    "stats/unpaired": ("stats_unpaired",),
    "metrics/__init__": ("accuracy", "swap", "external"),
    "metrics/_answers": ("answers",),
    "metrics/_coins": ("one_run_metric",),
    "metrics/_contents": ("records_whole",),
    "metrics/_crossfit": ("swap_game", "swap", "swap_coverage"),
    "metrics/_direction": ("contributions",),
    "metrics/_epsilon": ("epsilon_small", "epsilon", "competition", "conformity/test_metric_defects"),
    "metrics/_epsilon_bound": ("epsilon_small", "epsilon", "competition", "conformity/test_metric_defects"),
    "metrics/_game": ("swap_game", "swap"),
    "metrics/_klom": ("stats_klom", "external_study"),
    "metrics/_null": ("competition_numbers", "competition"),
    "metrics/_one_run": ("one_run_metric",),
    "metrics/_pairs": ("on_pairs_numbers", "on_pairs"),
    "metrics/_population": ("ruli_numbers", "ruli", "ruli_rows", "external"),
    "metrics/_reference": ("reference_densities", "vulnerability", "ruli", "conformity/test_metric_defects"),
    "metrics/_text": ("text_rows", "text_metrics", "levels", "text_models", "comparisons"),
    "metrics/_units": ("contributions", "text_rows", "answers"),
    "metrics/_update": ("update",),
    "metrics/accuracy": ("accuracy", "external", "ruli_rows", "contributions"),
    "metrics/accuracy_on_pairs": ("on_pairs",),
    "metrics/blind": ("blind_numbers", "blind", "ruli_rows", "external"),
    "metrics/competition": ("competition_numbers", "competition", "on_pairs", "external", "contributions"),
    "metrics/competition_on_pairs": ("on_pairs_numbers", "on_pairs"),
    "metrics/confusion": ("confusion",),
    "metrics/efficacy": ("efficacy_numbers", "efficacy", "on_pairs", "efficacy_end_to_end", "contributions"),
    "metrics/efficacy_on_pairs": ("on_pairs",),
    "metrics/kernel": ("kernel", "external_study"),
    "metrics/leak_at_k": ("leak_at_k",),
    "metrics/memorisation": ("text_rows", "text_metrics", "text_models"),
    "metrics/one_run": ("one_run_metric",),
    "metrics/multiple_choice": ("text_rows", "answers"),
    "metrics/rouge": ("answer_rows", "answers", "external_models"),
    "metrics/utility": ("answer_rows", "answers"),
    **{f"metrics/{name}": ("text_rows", "text_metrics", "text_verdicts")
       for name in ("overlap", "privleak", "truth_ratio")},
    "metrics/perplexity": ("text_rows", "levels", "text_metrics", "question_answer"),
    "metrics/phi": ("external_rows", "contributions", "external"),
    "metrics/published": ("published_yardsticks", "field"),
    **{f"metrics/{name}": ("records_recognised", "records_whole") for name in ("records", "records_by_retraining")},
    "metrics/relearn": ("relearn_numbers", "relearn"),
    "metrics/quantised": ("quantised",),
    "metrics/representation": ("representation",),
    "metrics/retained_risk": ("retained_risk",),
    "metrics/rouge_at_k": ("best_of", "answer_rows", "answers"),
    "metrics/seed_spread": ("seed_spread",),
    "stats/nested": ("seed_spread",),
    "metrics/requests": ("requests",),
    "metrics/ruli": ("ruli_numbers", "ruli", "ruli_rows", "external", "contributions"),
    "metrics/ruli_on_pairs": ("on_pairs",),
    "metrics/swap": ("swap", "swap_game", "external", "contributions"),
    "metrics/texts": ("texts_numbers", "text_data", "records_whole", "external_models"),
    "metrics/vulnerability": ("vulnerability_numbers", "vulnerability", "ruli_rows"),
    "attacks/__init__": ("attacks_thresholds",),
    "attacks/art": ("conformity/test_art",),
    "attacks/gradient_norm": ("attacks_gradient",),
    "attacks/iam": ("attacks_iam",),
    "attacks/lira": ("attacks_lira", "conformity/test_attack_defects"),
    **{f"attacks/{name}": ("attacks_text",)
       for name in ("min_k", "min_k_plus_plus", "neighbourhood", "reference", "zlib")},
    "attacks/neighbour_classes": ("attacks_neighbours",),
    "attacks/rmia": ("attacks_rmia", "conformity/test_attack_defects"),
    "attacks/shadow": ("attacks_shadow",),
    "attacks/update": ("update",),
    **{f"attacks/{name}": ("attacks_thresholds", "conformity/test_attack_defects")
       for name in ("confidence", "correctness", "entropy", "modified_entropy")},
    **{f"attacks/{name}": ("attacks_population",)
       for name in ("kde", "likelihood_ratio", "loss", "population", "random", "svc")},
    "methods/__init__": ("methods_contract",),
    "methods/_certified": ("methods_certified",),
    "methods/_dampening": ("methods_weights",),
    "methods/_inputs": ("methods_boundary",),
    "methods/_labels": ("methods_teachers",),
    **{
        f"methods/_{name}": ("methods_classic", "methods_published")
        for name in ("packages", "processor", "published", "reads")
    },
    "methods/_tokens": TEXT,
    "methods/amnesiac": ("methods_weights",),
    "methods/bad_teacher": ("methods_teachers",),
    **{f"methods/{name}": ("methods_boundary",) for name in ("boundary_expand", "boundary_shrink", "unsir")},
    **{f"methods/{name}": ("methods_certified",) for name in ("newton", "noisy_finetune")},
    "methods/classic": ("methods_classic", "methods_published"),
    "methods/competition_first": ("methods_competition",),
    "methods/competition_second": ("methods_competition",),
    "methods/fisher": ("methods_weights",),
    "methods/altpo": ("methods_alternates",),
    "methods/idk_dpo": ("methods_teachers", "methods_text"),
    "methods/_preference": ("methods_alternates", "methods_teachers", "methods_text"),
    "methods/salun": ("methods_weights", "methods_teachers"),
    "methods/scrub": ("methods_teachers",),
    **{f"methods/{name}": ("methods_weights",) for name in ("lfssd", "ssd")},
    **{f"methods/{name}": ("methods_layers",) for name in ("ftfinal", "retrfinal", "initial", "retrain")},
    **{f"methods/{name}": ("methods_gradient", "methods_teachers")
       for name in ("finetune", "ga_plus", "l1_sparse", "neggrad", "neggrad_plus", "npo", "random_label")},
    "protocols/_candidates": ("protocol_draws", "candidates"),
    "protocols/_formats": ("own_folders",),
    "protocols/competition": ("protocol_draws", "protocols", "draws", "seed_spread"),
    "protocols/efficacy": ("protocol_draws", "protocols", "efficacy"),
    "protocols/external": ("imported_folders", "imported", "protocol_draws"),
    "protocols/ruli": ("protocol_draws", "ruli_protocol", "protocols"),
    "artifacts/arrays": ("memberships", "artifacts", "records", "requests", "protocols"),
    "artifacts/blocks": ("blocks", "stored_logits"),
    "artifacts/cells": ("tables", "records", "inert", "rows", "records_recognised", "standings"),
    "artifacts/canaries": ("canaries",),
    "artifacts/contributions": ("contribution_files", "records", "contributions"),
    "artifacts/external": ("imported_files", "imported"),
    "artifacts/features": ("records", "features", "representation"),
    "artifacts/files": ("file_format", "files", "artifacts", "tables", "bank_files"),
    "artifacts/folders": ("source", "imported_folders"),
    "artifacts/generations": ("records", "generations"),
    "artifacts/headers": ("imported_files", "own_folders"),
    "artifacts/logits": ("unchanged", "stored_logits", "artifacts", "records", "case"),
    "artifacts/no_logits": ("no_logits", "plausibility"),
    "artifacts/published": ("field", "published_yardsticks", "display_published"),
    "artifacts/queries": ("records", "features"),
    "artifacts/readings": ("records", "case"),
    "artifacts/records": ("records_recognised", "records_whole"),
    "artifacts/relearned": ("records", "relearn"),
    "artifacts/rows": ("rows", "row_files", "inert", "tables"),
    "artifacts/samples": ("artifacts", "records", "question_answer", "text_data"),
    "artifacts/selection": ("records", "ruli_protocol"),
    "artifacts/trials": ("tuning_table", "campaign"),
    "artifacts/verdicts": ("records", "comparisons", "display_decisions"),
    "artifacts/views": ("records", "question_answer"),
    "artifacts/tables": ("file_format", "tables", "case"),
    "bank/fitting": ("fitting", "bank", "lanes"),
    **{f"workflow/{name}": PLAN for name in ("nodes", "plan", "plan_models", "plan_scenario")},
    "adversary/external_case": (
        "external_parts", "external_rows", "external_coins", "external_study", "comparisons_doubt",
    ),
    "workflow/plan_external": ("plan/test_nodes_of_logits", "external_study", "plan/test_nodes", "plan/test_options"),
}  # fmt: skip
#: For files of a room without a line of their own.
ELSE = {
    "stats": SCORES, "metrics": ("accuracy",),
    "protocols": ("protocol_draws", "protocols", "candidates", "protocol_swap"),
    "artifacts": ("artifacts", "files", "tables"),
}  # fmt: skip
#: Rooms whose options stand on the page of fields, with their defaults and bounds.
OPTIONS = ("protocols", "metrics", "attacks", "methods")
#: Files with a case for each file of a room, named by it: only these cases are run, last.
CASES = {"attacks": ("attacks_contract",), "methods": (*TEXT, "methods_contract")}


#: Files that import one of the library and are not listed for it are run last, unless they are more than this: then
#: most of them only make their cases with it.
IMPORTING = 10


@functools.cache
def imported() -> dict[str, set[str]]:
    """File of tests → what it imports of the library: rooms, modules and names in them, as paths."""
    parts = {}
    for path in sorted(
        path for folder in ("unit", "plan", "conformity") for path in ROOT.glob(f"tests/{folder}/test_*.py")
    ):
        nodes = [node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.ImportFrom)]
        modules = [(node.module or "", node.names) for node in nodes]
        rooms = [(name.replace(".", "/"), names) for name, names in modules if name.startswith("unlearning_audit.")]
        names = {f"{room}/{alias.name}" for room, names in rooms for alias in names} | {room for room, _ in rooms}
        parts[str(path.relative_to(ROOT))] = {name.removeprefix("unlearning_audit/") for name in names}
    return parts


def files(names: tuple[str, ...]) -> list[str]:
    """The files of tests, by path from the root."""
    return [f"tests/{name}.py" if "/" in name else f"tests/unit/test_{name}.py" for name in names]


def tests_of(module: str) -> list[list[str]]:
    """Arguments of pytest, run by run: first the files of which every test reads what ``module`` does."""
    room, name = module.split("/")
    whole = TESTS.get(module, ELSE.get(room, ()))
    cases = () if name.startswith("_") else tuple(case for case in CASES.get(room, ()) if case not in whole)
    text = (ROOT / f"unlearning_audit/{module}.py").read_text()
    whole += ("frozen",) if "frozen=True" in text else ()
    whole += ("environment",) if "TYPE_CHECKING" in text else ()
    whole += ("pages",) if room in OPTIONS and not name.startswith("_") else ()
    whole += ("declarations",) if room in OPTIONS and not name.startswith("_") else ()
    more = [file for file, names in imported().items() if module in names and file not in files(whole + cases)]
    runs = [files(whole), [*files(cases), "-k", name] if cases else [], more if len(more) <= IMPORTING else []]
    assert any(runs), f"no tests are listed for {module}"
    return [run for run in runs if run]
