"""Which stage feeds which: the arrows of the drawing in the report."""

from unlearning_audit.workflow.nodes import Node, Plan


def edges(plan: Plan) -> list[list[str]]:
    """[from, to] between stages, without those that another way implies for every node."""
    above: dict[str, set[str]] = {}
    arrows: dict[tuple[str, str], None] = {}

    def visit(node: Node) -> None:
        if node.name in above:
            return
        for parent in node.parents.values():  # a selection comes before the splits that it makes
            visit(parent)
        beyond = set().union(*(above[name] for name in node.parents))
        above[node.name] = beyond | node.parents.keys()
        arrows.update({(p.stage, node.stage): None for name, p in node.parents.items() if name not in beyond})

    for node in plan.all():
        visit(node)
    return [list(edge) for edge in arrows]
