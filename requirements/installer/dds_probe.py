# SPDX-License-Identifier: MIT
"""Sends one of our messages to another process and back over DDS; run by the doctor.

python requirements/installer/dds_probe.py          prints the time of the round trip
python requirements/installer/dds_probe.py --echo   the other process: answers what it hears
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time

import rclpy
from equi_interfaces.msg import DeltaCommand
from rclpy.executors import ExternalShutdownException
from rclpy.qos import QoSProfile

# Domains that the tests do not use and whose ports are free on Linux.
FIRST_DOMAIN, LAST_DOMAIN = 215, 231
PATIENCE_S = 20.0


def main() -> int:
    """Run one side of the round trip; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--echo", action="store_true", help="answer instead of asking")
    parser.add_argument("--domain", type=int, default=random.randint(FIRST_DOMAIN, LAST_DOMAIN))
    options = parser.parse_args()
    rclpy.init(domain_id=options.domain)
    try:
        return echo() if options.echo else ask(options.domain)
    except (KeyboardInterrupt, ExternalShutdownException):
        return 1
    finally:
        rclpy.utilities.try_shutdown()


def echo() -> int:
    """Send everything back until the process is ended."""
    node = rclpy.create_node("dds_probe_echo")
    publisher = node.create_publisher(DeltaCommand, "dds_probe_answer", QoSProfile(depth=1))
    node.create_subscription(
        DeltaCommand, "dds_probe_question", publisher.publish, QoSProfile(depth=1)
    )
    rclpy.spin(node)
    return 0


def ask(domain: int) -> int:
    """Ask until the answer to the newest question comes back."""
    other = subprocess.Popen([sys.executable, __file__, "--echo", "--domain", str(domain)])
    answers: list[DeltaCommand] = []
    node = rclpy.create_node("dds_probe_ask")
    publisher = node.create_publisher(DeltaCommand, "dds_probe_question", QoSProfile(depth=1))
    node.create_subscription(DeltaCommand, "dds_probe_answer", answers.append, QoSProfile(depth=1))
    try:
        deadline = time.monotonic() + PATIENCE_S
        number = 0
        while time.monotonic() < deadline and other.poll() is None:
            number += 1
            sent = time.monotonic()
            publisher.publish(DeltaCommand(step_index=number, episode_id="round trip"))
            while time.monotonic() < sent + 0.2:
                rclpy.spin_once(node, timeout_sec=0.02)
                if any(answer.step_index == number for answer in answers):
                    took_ms = 1e3 * (time.monotonic() - sent)
                    sys.stdout.write(f"round trip in {took_ms:.1f} ms (question {number})\n")
                    return 0
        sys.stderr.write(f"no answer within {PATIENCE_S:.0f} s\n")
        return 1
    finally:
        other.terminate()
        try:
            other.wait(timeout=3.0)
        except subprocess.TimeoutExpired:
            other.kill()
            other.wait()


if __name__ == "__main__":
    raise SystemExit(main())
