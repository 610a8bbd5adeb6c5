# SPDX-License-Identifier: MIT
"""The order in which lifecycle nodes are brought up and down; knows nothing of ROS.

First every node is configured, so that a refusal comes before anything works; then each is
activated in order. They are brought down in the reverse order: what is started last (the arm) is
stopped first. Whoever makes the transitions is a `NodeControl`.
"""

from __future__ import annotations

import typing
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

UNKNOWN, UNCONFIGURED, INACTIVE, ACTIVE, FINALIZED = (
    "unknown",
    "unconfigured",
    "inactive",
    "active",
    "finalized",
)
"""Labels of the primary states, as lifecycle_msgs has them."""
DOWNWARDS = {ACTIVE: "deactivate", INACTIVE: "cleanup", UNCONFIGURED: "shutdown"}
"""The transition that leads one state further down."""
LEADS_TO = {
    "configure": INACTIVE,
    "activate": ACTIVE,
    "deactivate": INACTIVE,
    "cleanup": UNCONFIGURED,
    "shutdown": FINALIZED,
}
"""The state in which a transition ends, if nothing refuses it."""


class NodeControl(typing.Protocol):
    """Whoever can see and change the states of nodes."""

    def get_state(self, node: str) -> Awaitable[str]:
        """Label of the node's present state; UNKNOWN if it does not answer in time."""

    def change_state(self, node: str, transition: str) -> Awaitable[bool]:
        """Make a transition, by label; whether it succeeded in time."""


@dataclass(frozen=True)
class BringUpPlan:
    """Which nodes, in which order, and which of them a person activates."""

    nodes: tuple[str, ...]
    manual_activation: tuple[str, ...] = ()
    """Nodes that are configured here and activated by an operator."""

    def __post_init__(self) -> None:
        if not self.nodes or "" in self.nodes:
            raise ValueError("node_names must name at least one node; empty names are not allowed")
        if len(set(self.nodes)) != len(self.nodes):
            raise ValueError(f"node_names has a node twice: {', '.join(self.nodes)}")
        unknown = sorted(set(self.manual_activation) - set(self.nodes))
        if unknown:
            raise ValueError(
                f"manual_activation names {', '.join(unknown)}, not among node_names "
                f"({', '.join(self.nodes)})"
            )

    @property
    def automatic(self) -> tuple[str, ...]:
        """Nodes that are activated here, in order."""
        return tuple(node for node in self.nodes if node not in self.manual_activation)


class BringUpFailed(RuntimeError):
    """A node did not appear, or did not make a transition."""

    def __init__(self, node: str, what: str) -> None:
        super().__init__(f"{node} {what}")
        self.node = node


async def bring_up(
    plan: BringUpPlan, control: NodeControl, may_go_on: Callable[[], bool] = lambda: True
) -> None:
    """Configure every node, then activate those that are not a person's to activate.

    A node that is further already is left as it is.

    Raises:
        BringUpFailed: names the node that refused, died or did not answer.
    """
    for node in plan.nodes:
        await _raise_to(INACTIVE, node, "configure", control, may_go_on)
    for node in plan.automatic:
        await _raise_to(ACTIVE, node, "activate", control, may_go_on)


async def _raise_to(
    wanted: str,
    node: str,
    transition: str,
    control: NodeControl,
    may_go_on: Callable[[], bool],
) -> None:
    if not may_go_on():
        raise BringUpFailed(node, f"was not told to {transition}: another node has failed")
    state = await control.get_state(node)
    if state in (wanted, ACTIVE):
        return
    if state == UNKNOWN:
        raise BringUpFailed(node, "does not answer; is its process running?")
    if not await control.change_state(node, transition):
        raise BringUpFailed(node, f"did not {transition} (it was {state})")


async def bring_down(nodes: Sequence[str], control: NodeControl) -> list[str]:
    """Lead every node to `finalized`, last one first; returns those that could not be led there.

    One that fails does not keep the others from being brought down. Each node is stopped (leaves
    `active`) before any of them is taken apart.
    """
    order = list(reversed(nodes))
    missing: list[str] = []
    for node in order:
        if await control.get_state(node) == ACTIVE:
            await control.change_state(node, DOWNWARDS[ACTIVE])
    for node in order:
        for _ in DOWNWARDS:
            state = await control.get_state(node)
            if state not in DOWNWARDS or not await control.change_state(node, DOWNWARDS[state]):
                break
            if state == UNCONFIGURED:
                state = FINALIZED
                break
        if state != FINALIZED:
            missing.append(node)
    return missing
