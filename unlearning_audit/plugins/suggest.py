"""Messages about unknown names."""

import difflib
from collections.abc import Iterable


def unknown(name: str, options: Iterable[str], description: str = "such field") -> str:
    """The sentence for a name that does not exist: the nearest one, and all there are."""
    options = sorted(options)
    near = difflib.get_close_matches(name, options, n=1)
    hint = f", did you mean {near[0]!r}?" if near else ""
    return (
        f"there is no {description}{hint} ({'known: ' + ', '.join(options) if options else 'nothing can be set here'})"
    )
