# SPDX-License-Identifier: MIT
"""play_bag: publishes the messages of a record again, with their times, as `ros2 bag play` does.

    ros2 run equi_evaluation play_bag runs/evaluation/.../block_picking-7-ab12 --clock-topics-all

For where rosbag2 is not installed; the options are a part of rosbag2's and mean the same. The node
has the name of rosbag2's too, so nodes that accept one publisher only are told of it in one way:
`-p use_sim_time:=true -p publishers.robot_state:=rosbag2_player`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.utilities import remove_ros_args
from rosgraph_msgs.msg import Clock

from equi_evaluation.bag.metadata import BagTopic
from equi_evaluation.bag.reader import bag_topics, raw_messages
from equi_evaluation.bag.ros_topics import message_class, playing_qos
from equi_evaluation.recording import RecordingError
from equi_ros.run_node import initialized
from equi_ros.stamps import time_message

NODE_NAME = "rosbag2_player"
CLOCK_HZ = 40.0
_WAIT_STEP_S = 0.05
_CLOCK_QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)


class BagPlayer(Node):
    """Publishers of a bag's topics, and the clock."""

    def __init__(self, bag: Path, topics: Sequence[BagTopic], *, clock: bool) -> None:
        super().__init__(NODE_NAME, enable_rosout=False)
        self._bag = bag
        self._publishers_by_topic: dict[str, Publisher] = {}
        for topic in topics:
            try:
                kind = message_class(topic.type_name)
            except (ImportError, AttributeError, ValueError):
                raise RecordingError(
                    f"{topic.name} has the type {topic.type_name}, which is not installed; "
                    f"leave it out: --exclude-topics {topic.name}"
                ) from None
            self._publishers_by_topic[topic.name] = self.create_publisher(
                kind, topic.name, playing_qos(topic.qos)
            )
        # Absolute: this is where every node with use_sim_time looks.
        self._clock_publisher = (
            self.create_publisher(Clock, "/clock", _CLOCK_QOS) if clock else None
        )

    def subscription_count(self, topic: str) -> int:
        """How many listen to a topic of the bag."""
        return int(self._publishers_by_topic[topic].get_subscription_count())

    def tell_time(self, time_ns: int) -> None:
        """Publish the bag's time."""
        if self._clock_publisher is not None:
            self._clock_publisher.publish(Clock(clock=time_message(time_ns)))

    def play(
        self, rate: float, clock_hz: float, clock_each: bool, check: Callable[[], None]
    ) -> int:
        """Publish every message at its time; returns how many there were.

        Args:
            rate: how many times as fast as recorded.
            clock_hz: how often the time is told [Hz]; 0: only where it is told anyway.
            clock_each: tell the time before every message too.
            check: called at least every 50 ms; may raise to stop.
        """
        count, first_ns, began_s = 0, None, time.monotonic()
        next_clock_s = began_s
        for message in raw_messages(self._bag, self._publishers_by_topic):
            if first_ns is None:
                first_ns = message.time_ns
            due_s = began_s + (message.time_ns - first_ns) / 1e9 / rate
            while True:
                now_s = time.monotonic()
                if clock_hz and now_s >= next_clock_s:
                    passed_ns = round((min(now_s, due_s) - began_s) * rate * 1e9)
                    self.tell_time(first_ns + passed_ns)
                    next_clock_s += 1.0 / clock_hz
                if now_s >= due_s:
                    break
                check()
                wake_s = min(due_s, next_clock_s) if clock_hz else due_s
                time.sleep(min(max(wake_s - now_s, 0.0), _WAIT_STEP_S))
            if clock_each:
                self.tell_time(message.time_ns)
            self._publishers_by_topic[message.topic].publish(message.data)
            count += 1
        return count


def chosen_topics(
    topics: Sequence[BagTopic], only: Sequence[str], without: Sequence[str]
) -> list[BagTopic]:
    """The topics to play; a name that the bag does not hold is refused."""
    names = {topic.name for topic in topics}
    only, without = (["/" + name.lstrip("/") for name in list_] for list_ in (only, without))
    for name in [*only, *without]:
        if name not in names:
            raise RecordingError(f"the bag has no topic {name}; it has {', '.join(sorted(names))}")
    chosen = [
        item for item in topics if (not only or item.name in only) and item.name not in without
    ]
    if not chosen:
        raise RecordingError("there is nothing to play: no topic is left")
    return chosen


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="play_bag",
        description="Publish the messages of a recorded episode again, at their times.",
        epilog="Example: ros2 run equi_evaluation play_bag runs/e --clock-topics-all "
        "--exclude-topics /observation /delta_command",
    )
    parser.add_argument("bag", type=Path, help="folder of the bag, or an MCAP file")
    parser.add_argument("--topics", nargs="+", default=[], help="only these")
    parser.add_argument("--exclude-topics", nargs="+", default=[], help="all but these")
    parser.add_argument("-r", "--rate", type=float, default=1.0, help="times as fast")
    parser.add_argument("-d", "--delay", type=float, default=0.0, help="wait before [s]")
    parser.add_argument(
        "--clock",
        type=float,
        nargs="?",
        const=CLOCK_HZ,
        default=0.0,
        metavar="HZ",
        help=f"publish /clock at this rate [Hz] (default: off; without a number {CLOCK_HZ:g})",
    )
    parser.add_argument(
        "--clock-topics-all", action="store_true", help="publish /clock before every message"
    )
    options = parser.parse_args(arguments)
    if not options.rate > 0.0:
        parser.error(f"--rate must be positive, got {options.rate:g}")
    if not options.delay >= 0.0 or not options.clock >= 0.0:
        parser.error("--delay and --clock must not be negative")
    return options


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    arguments = sys.argv[1:] if args is None else args
    options = parse(remove_ros_args([sys.argv[0], *arguments])[1:])
    with initialized(arguments) as shutdown:
        player: BagPlayer | None = None
        try:
            topics = chosen_topics(bag_topics(options.bag), options.topics, options.exclude_topics)
            clocked = bool(options.clock) or options.clock_topics_all
            with shutdown.defer():
                player = BagPlayer(options.bag, topics, clock=clocked)
                begin_s = time.monotonic() + options.delay
                while time.monotonic() < begin_s:
                    shutdown.check()
                    time.sleep(_WAIT_STEP_S)
                count = player.play(
                    options.rate, options.clock, options.clock_topics_all, shutdown.check
                )
            sys.stdout.write(f"played {count} messages of {len(topics)} topics\n")
            return 0
        except RecordingError as error:
            sys.stderr.write(f"{error}\n")
            return 2
        except KeyboardInterrupt:
            return 130
        finally:
            shutdown.ignore()
            if player is not None:
                player.destroy_node()


if __name__ == "__main__":
    sys.exit(main())
