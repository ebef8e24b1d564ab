"""Which stage feeds which: the arrows of the drawing in the report."""

from unlearning_audit.workflow.nodes import Node, Plan


def edges(plan: Plan) -> list[list[str]]:
    """[from, to] between stages, without those that another way implies for every node."""
    maker = {path: node for node in plan.all() for path in node.outputs.values()}
    above: dict[str, set[str]] = {}
    arrows: dict[tuple[str, str], None] = {}

    def visit(node: Node) -> None:
        if node.name in above:
            return
        paths = [p for group in node.inputs.values() for p in ([group] if isinstance(group, str) else group)]
        parents = {maker[path].name: maker[path] for path in paths}
        for parent in parents.values():  # a selection comes before the splits that it makes
            visit(parent)
        beyond = set().union(*(above[name] for name in parents), set())
        above[node.name] = beyond | set(parents)
        arrows.update({(p.stage, node.stage): None for name, p in parents.items() if name not in beyond})

    for node in plan.all():
        visit(node)
    return [list(edge) for edge in arrows]
