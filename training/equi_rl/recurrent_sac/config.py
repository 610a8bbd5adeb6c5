# SPDX-License-Identifier: MIT
"""Settings of recurrent SAC on any gymnasium environment, and the networks they lead to."""

from __future__ import annotations

from dataclasses import dataclass

from equi_rl.agents.sac_settings import SacSettings
from equi_rl.nets.config import NetworkConfig


@dataclass(frozen=True)
class Symmetry:
    """How a group acts on the observations and actions of an environment.

    A pendulum seen as (cos, sin) of its angle and driven by a torque looks the same in a mirror:
    `Symmetry("flip", observation="trivial:1,sign:1", action="sign:1")`.
    """

    group: str
    """flip (vectors only), C4, C8, D4 or D8."""
    action: str
    """Layout of the action's components, e.g. `sign:1` or `trivial:1,vector:2`."""
    observation: str = ""
    """Layout of a vector's components; an image needs none, its pixels move."""


@dataclass(frozen=True)
class RecurrentSacConfig:
    """Hyper-parameters; `training/examples/recurrent_sac_study.py` has those of two examples."""

    memory: str = "lstm"
    """lstm, none (feed-forward), or a memory that `register_memory` added."""
    symmetry: Symmetry | None = None
    """What the networks respect; None: plain networks."""
    encoder_channels: tuple[int, ...] = (64,)
    """Widths of the layers that see a vector; the last one is also the width for an image."""
    action_channels: int = 16
    """Width of the previous action's embedding; 0 hides the previous action."""
    recurrent_channels: int = 64
    """Width of the memory."""
    head_channels: tuple[int, ...] = (64, 64)
    """Hidden widths of the policy's and the value's heads."""
    discount: float = 0.98
    """Discount factor gamma."""
    td_lambda: float = 0.0
    """Lambda of the TD(lambda) targets."""
    reward_scale: float = 1.0
    """Factor on the rewards; returns of about 1 to 10 suit the networks best."""
    learning_rate: float = 1e-3
    """Adam's learning rate of actor and critic."""
    tau: float = 0.01
    """Polyak coefficient of the target network per update."""
    initial_temperature: float = 0.1
    """Entropy temperature alpha before the first update."""
    target_entropy: float | None = None
    """Entropy [nat] to which the temperature steers; None: minus the number of components."""
    batch_episodes: int = 16
    """Episodes, or pieces of them, in a batch."""
    sequence_steps: int = 0
    """Longest piece of an episode in a batch; 0: whole episodes."""
    updates_per_step: float = 0.25
    """Updates per step of the environment, made after each episode."""
    random_steps: int = 1_000
    """Steps with uniformly random actions before learning starts."""
    replay_capacity: int = 100_000
    """Most transitions kept."""
    seed: int = 0
    """Of networks, environment, exploration and batches."""

    def __post_init__(self) -> None:
        for name in ("batch_episodes", "replay_capacity", "recurrent_channels"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        for name in ("sequence_steps", "random_steps", "action_channels"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 0")
        for name in ("updates_per_step", "learning_rate", "initial_temperature"):
            if not getattr(self, name) > 0.0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be above 0")
        if not self.encoder_channels or not self.head_channels:
            raise ValueError("encoder_channels and head_channels need at least one width each")
        self.sac_settings(1)  # refuses what SAC itself refuses

    def sac_settings(self, n_actions: int) -> SacSettings:
        """The settings of the update, shared with the robot's agents."""
        entropy = -float(n_actions) if self.target_entropy is None else self.target_entropy
        return SacSettings(
            discount=self.discount,
            reward_scale=self.reward_scale,
            td_lambda=self.td_lambda,
            tau=self.tau,
            actor_learning_rate=self.learning_rate,
            critic_learning_rate=self.learning_rate,
            temperature_learning_rate=self.learning_rate,
            initial_temperature=self.initial_temperature,
            target_entropy=entropy,
            # One more pass through the critic buys nothing on problems of this size.
            actor_uses_updated_critic=False,
        )

    def network(self, observation_shape: tuple[int, ...], n_actions: int) -> NetworkConfig:
        """The networks for observations (C,) or (C, S, S) and actions (n_actions,)."""
        if len(observation_shape) == 1:
            size, widths = 1, self.encoder_channels
            kernels, strides = (1,) * len(widths), (1,) * len(widths)
        elif len(observation_shape) == 3 and observation_shape[1] == observation_shape[2]:
            size = observation_shape[1]
            kernels, strides = tiling_encoder(size)
            widths = (self.encoder_channels[-1],) * len(kernels)
        else:
            raise ValueError(
                f"observations have shape {observation_shape}; recurrent SAC takes vectors (C,) and"
                " square images (C, S, S); wrap the environment, for example with"
                " gymnasium.wrappers.TransformObservation"
            )
        channels = observation_shape[0]
        symmetry = self.symmetry or Symmetry("flip" if size == 1 else "C4", f"trivial:{n_actions}")
        is_equivariant = self.symmetry is not None
        return NetworkConfig(
            group=symmetry.group,
            observation="array",
            observation_size=size,
            observation_layout=symmetry.observation or f"trivial:{channels}",
            action_layout=symmetry.action,
            n_actions=n_actions,
            encoder_channels=widths,
            encoder_kernels=kernels,
            encoder_strides=strides,
            action_channels=self.action_channels,
            recurrent_channels=self.recurrent_channels,
            head_channels=self.head_channels,
            critic_action_channels=self.head_channels[0],
            equivariant_encoder=is_equivariant,
            equivariant_lstm=is_equivariant,
            equivariant_heads=is_equivariant,
            log_std_xy="tied",
            log_std_range=(-5.0, 2.0),
            memory=self.memory,
        )


def tiling_encoder(size: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Kernels and strides that halve an image of ``size`` pixels until one pixel is left.

    Each kernel tiles what is left of the image exactly: a pixel that no filter reads would break
    the symmetry. None is of two pixels, for which escnn has no filters.
    """
    if size == 2:
        raise ValueError("images of 2 x 2 pixels have no encoder; pad them, or flatten them")
    kernels: list[int] = []
    strides: list[int] = []
    while size > 1:
        if size <= 4:
            kernel, stride = size, 1
        elif size <= 6:  # half of it would be two pixels
            kernel, stride = 3, 1
        else:
            kernel, stride = (4, 2) if size % 2 == 0 else (3, 2)
        kernels.append(kernel)
        strides.append(stride)
        size = (size - kernel) // stride + 1
    return tuple(kernels) or (1,), tuple(strides) or (1,)
