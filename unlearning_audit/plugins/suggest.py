"""Messages on unknown names."""

import difflib
from collections.abc import Iterable


def unknown(name: str, options: Iterable[str], description: str = "such field") -> str:
    """Return a sentence that ``name`` does not exist among ``options``, with the nearest option, if one is near, and
    all options. ``description``: what is missing, such as "such field"."""
    options = sorted(options)
    nearest = near(name, options)
    hint = f", did you mean {nearest!r}?" if nearest else ""
    known = "known: " + ", ".join(options) if options else "nothing can be set here"
    return f"there is no {description}{hint} ({known})"


def near(name: str, options: Iterable[str]) -> str:
    """Return the option whose spelling is nearest to ``name``; "" if no option has a similar spelling."""
    return next(iter(difflib.get_close_matches(name, sorted(options), n=1)), "")
