"""Versions of the packages that numbers depend on; looked up once, however many jobs a run has."""

from importlib import metadata

PACKAGES = ("torch", "torchvision", "transformers", "opacus", "adversarial-robustness-toolbox", "numpy", "scipy",
            "scikit-learn", "pandas", "snakemake")  # fmt: skip


def installed(package: str) -> str | None:
    """Version of a package, None where a stage's environment does without it."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


VERSIONS = {name: version for name in PACKAGES if (version := installed(name))}
