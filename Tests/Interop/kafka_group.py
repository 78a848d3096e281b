"""A consumer group as real brokers keep it: classic membership, dynamic and static, and what becomes of commits.

The states and answers are those of Kafka's group coordinator (KIP-62, KIP-345, KIP-394). The embedded brokers differ
from them where it counts: they refuse commits once some member has joined again, and know no static members.
"""

import asyncio
import uuid
from dataclasses import dataclass, field

OK, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS = 0, 22, 25, 27
MEMBER_ID_REQUIRED, FENCED_INSTANCE_ID = 79, 82
EMPTY, PREPARING, COMPLETING, STABLE = "Empty", "PreparingRebalance", "CompletingRebalance", "Stable"

#: An answer to a join: error, generation, protocol, leader, member, members with instance and metadata.
Joined = tuple[int, int, str, str, str, list[tuple[str, str | None, bytes]]]


@dataclass
class Member:
    id: str
    instance: str | None
    session: float
    rebalance: float
    protocols: list[tuple[str, bytes]]
    seen: float
    assignment: bytes = b""
    join: asyncio.Future | None = None
    sync: asyncio.Future | None = None


def settle(future: asyncio.Future | None, value) -> None:
    if future is not None and not future.done():
        future.set_result(value)


@dataclass
class Group:
    #: How long the first members wait for others (`group.initial.rebalance.delay.ms`), in seconds.
    initial_delay: float
    state: str = EMPTY
    generation: int = 0
    protocol: str = ""
    leader: str = ""
    members: dict[str, Member] = field(default_factory=dict)
    #: Ids that were given out and not joined with yet, and until when.
    pending: dict[str, float] = field(default_factory=dict)
    offsets: dict[tuple[str, int], tuple[int, str]] = field(default_factory=dict)
    #: Errors that commits were answered with.
    refused: list[int] = field(default_factory=list)
    #: When the rebalance ends whoever is missing, and before when it does not end at all.
    deadline: float = 0
    earliest: float = 0

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def _fault(self, member_id: str, instance: str | None, generation: int | None = None) -> int:
        owner = self._static(instance)
        if owner is not None and owner.id != member_id:
            return FENCED_INSTANCE_ID
        if member_id not in self.members:
            return UNKNOWN_MEMBER_ID
        if generation is not None and generation != self.generation:
            return ILLEGAL_GENERATION
        self.members[member_id].seen = self.now
        return OK

    def _static(self, instance: str | None) -> Member | None:
        if instance is None:
            return None
        return next((member for member in self.members.values() if member.instance == instance), None)

    # Joining.

    async def join(self, ask) -> Joined:
        member_id, instance, protocols = ask.member_id, ask.group_instance_id, list(ask.group_protocols)
        if not member_id and instance is None:
            made = f"member-{uuid.uuid4()}"
            self.pending[made] = self.now + ask.session_timeout / 1000
            return MEMBER_ID_REQUIRED, -1, "", "", made, []
        old = self._static(instance) if not member_id else None
        if not member_id or self.pending.pop(member_id, None) is not None:
            member = Member(
                member_id or f"{instance}-{uuid.uuid4()}", instance, ask.session_timeout / 1000,
                ask.rebalance_timeout / 1000, protocols, self.now,
            )  # fmt: skip
            leader = self.leader
            if old is not None:
                self._replace(old, member)
            self.members[member.id] = member
            if old is not None and self.state == STABLE and self._select() == self.protocol:
                # Nobody else hears of it. The leader's old name keeps this member from dealing out partitions.
                return OK, self.generation, self.protocol, leader, member.id, []
        elif fault := self._fault(member_id, instance):
            return fault, -1, "", "", member_id, []
        else:
            member = self.members[member_id]
            is_same, member.protocols = member.protocols == protocols, protocols
            if is_same and (self.state == COMPLETING or (self.state == STABLE and member.id != self.leader)):
                return self._joined(member)
        self._prepare()
        settle(member.join, (UNKNOWN_MEMBER_ID, -1, "", "", member.id, []))
        future = member.join = asyncio.get_running_loop().create_future()
        self._complete_if_ready()
        return await future

    def _replace(self, old: Member, new: Member) -> None:
        del self.members[old.id]
        new.assignment = old.assignment
        if self.leader == old.id:
            self.leader = new.id
        settle(old.join, (FENCED_INSTANCE_ID, -1, "", "", old.id, []))
        settle(old.sync, (FENCED_INSTANCE_ID, b""))

    def _joined(self, member: Member) -> Joined:
        listed = []
        if member.id == self.leader:
            listed = [(each.id, each.instance, dict(each.protocols)[self.protocol]) for each in self.members.values()]
        return OK, self.generation, self.protocol, self.leader, member.id, listed

    def _select(self) -> str:
        """The first protocol of some member that all members know."""
        everybody = [dict(member.protocols) for member in self.members.values()]
        return next(name for name in everybody[0] if all(name in each for each in everybody))

    def _prepare(self) -> None:
        if self.state == PREPARING:
            return
        if self.state == COMPLETING:
            for member in self.members.values():
                settle(member.sync, (REBALANCE_IN_PROGRESS, b""))
        self.earliest = self.now + (self.initial_delay if self.state == EMPTY else 0)
        self.deadline = self.now + max((member.rebalance for member in self.members.values()), default=0)
        self.state = PREPARING

    def _complete_if_ready(self) -> None:
        if self.state != PREPARING or self.now < self.earliest:
            return
        missing = [member.id for member in self.members.values() if member.join is None]
        if (missing or self.pending) and self.now < self.deadline:
            return
        for each in missing:
            del self.members[each]
        self.generation += 1
        self.state = COMPLETING if self.members else EMPTY
        if not self.members:
            return
        self.protocol = self._select()
        if self.leader not in self.members:
            self.leader = next(iter(self.members))
        for member in self.members.values():
            member.seen, future, member.join = self.now, member.join, None
            settle(future, self._joined(member))

    # What members do.

    async def sync(self, ask) -> tuple[int, bytes]:
        if fault := self._fault(ask.member_id, ask.group_instance_id, ask.generation_id):
            return fault, b""
        member = self.members[ask.member_id]
        if self.state == PREPARING:
            return REBALANCE_IN_PROGRESS, b""
        if self.state == COMPLETING:
            future = member.sync = asyncio.get_running_loop().create_future()
            if member.id == self.leader:
                parts = dict(ask.group_assignment)
                self.state = STABLE
                for each in self.members.values():
                    each.assignment, each.seen = parts.get(each.id, b""), self.now
                    settle(each.sync, (OK, each.assignment))
                    each.sync = None
            return await future
        return OK, member.assignment

    def heartbeat(self, ask) -> int:
        fault = self._fault(ask.member_id, ask.group_instance_id, ask.generation_id)
        return fault or (REBALANCE_IN_PROGRESS if self.state == PREPARING else OK)

    def leave(self, member_id: str) -> int:
        self.pending.pop(member_id, None)
        return self._fault(member_id, None) or self._remove(member_id)

    def _remove(self, member_id: str) -> int:
        del self.members[member_id]
        self._prepare()
        self._complete_if_ready()
        return OK

    def commit_fault(self, ask) -> int:
        """Commits of the present generation count, also while the group waits for members to join again."""
        if ask.generation_id < 0 and self.state == EMPTY:
            return OK
        fault = self._fault(ask.member_id, ask.group_instance_id, ask.generation_id)
        fault = fault or (REBALANCE_IN_PROGRESS if self.state == COMPLETING else OK)
        if fault:
            self.refused.append(fault)
        return fault

    def tick(self) -> None:
        """Time passes: who was silent for a session is out, and a rebalance ends."""
        self.pending = {each: until for each, until in self.pending.items() if until > self.now}
        for member in list(self.members.values()):
            if member.join is None and member.sync is None and self.now > member.seen + member.session:
                self._remove(member.id)
        self._complete_if_ready()
