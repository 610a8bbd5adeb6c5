# SPDX-License-Identifier: MIT
"""Services: list, call."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable

from rclpy.node import Node

from ..console import err, out
from ..errors import CommandError
from ..graph_node import add_spin_time, graph_node, spin_until_done, wait_for
from ..interface_types import load_type, split_type
from ..listing import add_list_verb
from ..message_yaml import fill_message, read_values

WAIT_STEP_S = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(title="verbs", required=True, metavar="verb")
    add_list_verb(verbs, "services", _services, hidden_flags=("--include-hidden-services",))
    call = verbs.add_parser("call", help="call a service once")
    call.add_argument("service_name", help="name, such as /reset")
    call.add_argument("service_type", help="type, such as std_srvs/srv/Trigger")
    call.add_argument("values", nargs="?", default="{}", help="request in YAML, such as '{a: 1}'")
    add_spin_time(call)
    call.set_defaults(run=_call)


def check_offered(
    kind: str,
    name: str,
    type_name: str,
    known: Callable[[], dict[str, list[str]]],
    timeout_s: float,
) -> None:
    """Wait until a name is offered; complain if it never is, refuse it with another type.

    To be called before a client exists, which would count as an offer of the wanted type.
    """
    types = wait_for(lambda: known().get(name), timeout_s)
    if types and type_name not in types:
        raise CommandError(f"{kind} '{name}' has the type {', '.join(types)}, not {type_name}")
    if not types:
        near = difflib.get_close_matches(name, known(), n=1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        err(f"{kind} '{name}' is not offered by any node seen so far{hint}")


def _services(node: Node) -> dict[str, list[str]]:
    return dict(node.get_service_names_and_types())


def _call(options: argparse.Namespace) -> int:
    service_type = load_type(options.service_type, "srv")
    request = service_type.Request()
    fill_message(request, read_values(options.values))
    name = "/" + options.service_name.removeprefix("/")
    type_name = "/".join(split_type(options.service_type, "srv"))
    with graph_node() as node:
        check_offered("service", name, type_name, lambda: _services(node), options.spin_time)
        client = node.create_client(service_type, name)
        if not wait_for(client.service_is_ready, WAIT_STEP_S):
            out("waiting for service to become available...")
            while not client.wait_for_service(timeout_sec=WAIT_STEP_S):
                pass
        out(f"requester: making request: {request!r}\n")
        future = client.call_async(request)
        spin_until_done(node, future)
        if future.exception() is not None:
            raise CommandError(f"Exception while calling service: {future.exception()!r}")
        out(f"response:\n{future.result()!r}\n")
    return 0
