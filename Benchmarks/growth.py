"""How CPU per notification and throughput change with the number of apps and partitions, and the payload's size.

Beside each row stands h2load with as many connections and payloads as large: what the same C libraries take for that.
The runs are long, and the clock starts when a quarter is done and stops when one in a hundred is left: neither the
first connections count nor the few that a start put aside. The broker is the stand-in, since the embedded one becomes
slower with each record that it keeps.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench import Bench

#: Streams that the service has open in all connections together, about, and in one of them at most.
OPEN, STREAMS = 5_000, 500
SHARES = (0.25, 0.99)


@dataclass(frozen=True)
class Shape:
    apps: int = 1
    partitions: int = 8
    payload: int = 217


SHAPES = [
    Shape(), Shape(apps=10), Shape(apps=100), Shape(apps=1_000), Shape(partitions=32), Shape(partitions=256),
    Shape(payload=1_024), Shape(payload=4_000),
]  # fmt: skip


def growth(bench: "Bench") -> None:
    print(
        "| apps | connections | partitions | payload, bytes | per second | CPU, µs | h2load's CPU, µs | memory, MiB |"
    )
    print(
        "|-----:|------------:|-----------:|---------------:|-----------:|--------:|-----------------:|------------:|"
    )
    for number, shape in enumerate(SHAPES):
        run = bench.martlet(1_000 + number, shape.apps, shape.partitions, shape.payload, shares=SHARES)
        connections = shape.apps * bench.connections_per_app
        yardstick = bench.h2load(connections, min(OPEN // connections, STREAMS), shape.payload)
        print(
            f"| {shape.apps:>4,} | {connections:>11,} | {shape.partitions:>10} | {shape.payload:>14,} | "
            f"{run.per_second:>10,.0f} | {run.microseconds:>7.1f} | {yardstick.microseconds:>16.1f} | "
            f"{run.peak / (1 << 20):>11.0f} |",
            flush=True,
        )
