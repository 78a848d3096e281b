"""A partition of the stand-in broker: batches as they came, and the gaps that transactions and compaction leave."""

import struct
import time
from bisect import bisect_right
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c

#: A batch's header, magic 2: base offset, length, leader epoch, magic, CRC, attributes, last offset delta, two times,
#: producer id and epoch, base sequence, count.
HEADER = struct.Struct(">qiibIhiqqqhii")
CRC_AT, ATTRIBUTES_AT, LAST_DELTA_AT = 17, 21, 23
TRANSACTIONAL, CONTROL = 0x10, 0x20


@dataclass
class PartitionLog:
    #: Batches, and the offset after each.
    batches: list[bytes] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    #: Transactions: those that are open, by producer id, with their first offset; those that were aborted, with the
    #: offset of their marker.
    open: dict[int, int] = field(default_factory=dict)
    aborted: list[tuple[int, int, int]] = field(default_factory=list)
    #: What idempotent producers have sent, so that a batch that comes twice is stored once.
    sequences: dict[tuple[int, int, int], int] = field(default_factory=dict)

    @property
    def end(self) -> int:
        return self.ends[-1] if self.ends else 0

    @property
    def stable(self) -> int:
        """Up to where a reader of committed records may read."""
        return min(self.open.values(), default=self.end)

    def append(self, batch: bytes) -> int:
        """Stores one batch of a producer; its first offset."""
        header = HEADER.unpack_from(batch)
        assert header[3] == 2, "a batch of the format before Kafka 0.11"
        producer, sequence = header[9], header[11]
        known = self.sequences.get((producer, header[10], sequence)) if producer >= 0 else None
        if known is not None:
            return known
        base = self.end
        if producer >= 0:
            self.sequences[producer, header[10], sequence] = base
        self._store(struct.pack(">q", base) + batch[8:])
        return base

    def _store(self, batch: bytes) -> None:
        self.batches.append(batch)
        header = HEADER.unpack_from(batch)
        self.ends.append(header[0] + header[6] + 1)

    def read(self, offset: int, limit: int, end: int) -> bytes:
        """Batches from the one that holds `offset` on: at least one, if there is one before `end`."""
        index = bisect_right(self.ends, offset)
        found: list[bytes] = []
        while (
            index < len(self.batches) and self.ends[index] <= end and (not found or len(self.batches[index]) <= limit)
        ):
            found.append(self.batches[index])
            limit -= len(self.batches[index])
            index += 1
        return b"".join(found)

    def aborted_from(self, offset: int) -> list[tuple[int, int]]:
        return [(producer, first) for producer, first, marker in self.aborted if marker >= offset]

    # What producers' transactions and the log's cleaner leave behind.

    def write_in_transaction(self, producer: int, values: Iterable[bytes]) -> None:
        self.open.setdefault(producer, self.end)
        self._store(build(self.end, [(self.end + i, value) for i, value in enumerate(values)], TRANSACTIONAL, producer))

    def end_transaction(self, producer: int, commits: bool) -> None:
        """The marker, which has an offset and is no record."""
        first, marker = self.open.pop(producer), self.end
        if not commits:
            self.aborted.append((producer, first, marker))
        content = struct.pack(">hi", 0, 0)
        key = struct.pack(">hh", 0, 1 if commits else 0)
        self._store(build(marker, [(marker, content)], TRANSACTIONAL | CONTROL, producer, key=key))

    def compact(self, gone: Collection[int]) -> None:
        """Takes records away. Batches keep their first and last offset, also where nothing is left of them."""
        for index, batch in enumerate(self.batches):
            header = HEADER.unpack_from(batch)
            records = list(DefaultRecordBatch(batch))
            kept = [(record.offset, record.value) for record in records if record.offset not in gone]
            if header[5] == 0 and len(kept) < len(records):
                self.batches[index] = build(header[0], kept, 0, last=self.ends[index] - 1)


def build(
    base: int, records: list[tuple[int, bytes]], attributes: int, producer: int = -1, key: bytes | None = None,
    last: int | None = None,
) -> bytes:  # fmt: skip
    """A batch of records at these offsets."""
    builder = DefaultRecordBatchBuilder(2, 0, 0, producer, 0 if producer >= 0 else -1, -1, 1 << 20)
    now = int(time.time() * 1000)
    for offset, value in records:
        assert builder.append(offset - base, now, key, value, [])
    batch = bytearray(builder.build())
    last = last if last is not None else records[-1][0]
    struct.pack_into(">q", batch, 0, base)
    struct.pack_into(">hi", batch, ATTRIBUTES_AT, attributes, last - base)
    struct.pack_into(">I", batch, CRC_AT, calc_crc32c(memoryview(batch)[ATTRIBUTES_AT:]))
    return bytes(batch)
