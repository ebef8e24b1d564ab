"""Messages about unknown names."""

import difflib
from collections.abc import Iterable


def unknown(name: str, known: Iterable[str], what: str = "such field") -> str:
    """The sentence for a name that does not exist: the nearest one, and all there are."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f", did you mean {near[0]!r}?" if near else ""
    return f"there is no {what}{hint} ({'known: ' + ', '.join(known) if known else 'nothing can be set here'})"
