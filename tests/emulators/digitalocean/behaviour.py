"""How this cloud behaves today: how long things take, what is seen late, what will go wrong with the next create."""

from collections import defaultdict, deque
from dataclasses import dataclass, field

# What can become of a droplet whose create was answered with 202.
VANISHES = "vanishes"  # it could not be placed, and is gone with its action
ERRORED = "errored"  # its action ends errored; it stays, new, and bills
STUCK = "stuck"  # new for ever
NO_ADDRESS = "no address"  # active, but never with a public address
FATES = {VANISHES, ERRORED, STUCK, NO_ADDRESS}


@dataclass
class Delays:
    """How long things take, in seconds of the emulator's clock."""

    create_s: float = 45.0
    placement_s: float = 2.0  # until a droplet that cannot be placed is gone
    address_s: float = 0.0  # from active to having a public address
    power_s: float = 10.0
    attach_s: float = 5.0
    snapshot_s_per_gb: float = 59.0
    transfer_s_per_gb: float = 10.0

    def scaled(self, speed: float) -> "Delays":
        return Delays(**{name: value / speed for name, value in vars(self).items()})


@dataclass
class Behaviour:
    """Everything about the cloud that a test may want otherwise."""

    delays: Delays = field(default_factory=Delays)
    # By view: get, list, tag_list, name_list, volume_list; `tags` is how late a droplet's tags are applied, and `keys`
    # how late a new SSH key can be read and used.
    lag: dict[str, float] = field(default_factory=lambda: defaultdict(float, tags=2.0))
    gone_lag: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    hidden_until: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    capacity: dict[tuple[str, str], int] = field(default_factory=dict)  # (size, region); absent: without end
    says_where: bool = True  # a refusal for capacity names the regions that have it
    droplet_limit: int = 25
    gpu_limit: int = 8  # published nowhere
    volume_limit: int = 100
    volume_gib_limit: int = 16384  # of all volumes of an account together
    tag_limit: int = 500  # of an account; that there is one is believed, its height is published nowhere
    tags_per_resource: int = 50
    gpu_minimum_s: float = 300.0
    gpus_in_tag_list: bool = True  # believed of the live API, and not documented
    deletes_pending: bool = False  # a droplet with a pending event can be deleted
    late_snapshots: bool = False  # a snapshot goes on after its droplet was destroyed
    leaves_copies: bool = False  # a transfer that errors leaves a broken image of the same name
    ignores_shutdown: bool = False
    fates: deque[str] = field(default_factory=deque)  # of the next creates, one each; "" is a good one
    action_fates: dict[str, deque[str]] = field(default_factory=lambda: defaultdict(deque))  # errored or stuck
    used_gb: dict[str, float] = field(default_factory=dict)  # a droplet's data by its name, for the next snapshot

    def fate(self) -> str:
        return self.fates.popleft() if self.fates else ""

    def action_fate(self, kind: str) -> str:
        return self.action_fates[kind].popleft() if self.action_fates[kind] else ""
