"""Elements taken out of a tree, each looked at once: what is inside of one that is gone is gone with it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from selectolax.lexbor import LexborNode

from sendonce.adapters.contacts.bait import is_bait, opens_to_read


def outermost(nodes: Iterable[LexborNode]) -> list[LexborNode]:
    """Those that are in none of the others. ``nodes`` are in the order of the document."""
    kept: dict[int, LexborNode] = {}
    for node in nodes:
        if not any(above in kept for above in _ids_above(node)):
            kept[node.mem_id] = node
    return list(kept.values())


def remove_hidden(nodes: list[LexborNode], inline: Container[str]) -> None:
    """Links in hidden blocks stay, and what pop-ups say: scripts open these. A link that is hidden itself is
    a trap, and so are a hidden piece of a line and a block that is there for harvesters.
    """
    traps = outermost(node for node in nodes if node.tag == "a" or node.tag in inline)
    trap_ids = {trap.mem_id for trap in traps}
    blocks = outermost(
        node
        for node in nodes
        if node.mem_id not in trap_ids and not any(above in trap_ids for above in _ids_above(node))
    )
    for trap in traps:
        trap.decompose()
    for block in blocks:
        if is_bait(block):
            block.decompose()
        elif not opens_to_read(block):
            _keep_links(block)


def _keep_links(block: LexborNode) -> None:
    holding: set[int] = set()
    for link in block.css("a[href]"):
        for above in _ids_above(link):
            if above in holding:
                break
            holding.add(above)
            if above == block.mem_id:
                break
    if not holding:
        block.decompose()
        return
    left = [block]
    while left:
        for child in list(left.pop().iter()):
            if child.tag == "a" or child.mem_id in holding:
                left.append(child)
            else:
                child.decompose()


def _ids_above(node: LexborNode) -> Iterator[int]:
    above = node.parent
    while above is not None:
        yield above.mem_id
        above = above.parent
