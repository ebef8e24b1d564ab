"""Messages about unknown names."""

import difflib
from collections.abc import Iterable


def unknown(name: str, options: Iterable[str], description: str = "such field") -> str:
    """The sentence for a name that does not exist: the nearest one, and all there are."""
    options = sorted(options)
    nearest = near(name, options)
    hint = f", did you mean {nearest!r}?" if nearest else ""
    return (
        f"there is no {description}{hint} ({'known: ' + ', '.join(options) if options else 'nothing can be set here'})"
    )


def near(name: str, options: Iterable[str]) -> str:
    """The option that is spelled almost as ``name``; "" if there is none."""
    return next(iter(difflib.get_close_matches(name, sorted(options), n=1)), "")
