"""Versions of the packages on which numbers depend, looked up once per run."""

from importlib import metadata

PACKAGES = ("torch", "torchvision", "transformers", "opacus", "adversarial-robustness-toolbox", "numpy", "scipy",
            "scikit-learn", "pandas", "snakemake")  # fmt: skip


def installed(package: str) -> str | None:
    """Return the version of a package, or None if it is not installed in a stage's environment."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


VERSIONS = {name: version for name in PACKAGES if (version := installed(name))}
