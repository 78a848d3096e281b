"""Requests on both sides of every bound of the contract: each value of each field by itself, then mixtures."""

import random
from collections.abc import Iterator
from typing import Any

ABSENT = object()
APP = "shop-ios"
TYPES = [
    "alert", "background", "voip", "location", "complication", "fileprovider", "mdm", "liveactivity", "pushtotalk",
    "widgets", "controls",
]  # fmt: skip
SUFFIXES = [
    ".voip", ".location-query", ".complication", ".pushkit.fileprovider", ".push-type.liveactivity", ".voip-ptt",
    ".push-type.widgets", ".push-type.controls",
]  # fmt: skip
CHANNEL = "dHN0LXNyY2gtY2hubA=="
#: Values of no type that any field but the payload has.
ODD = [True, 1.5, {"a": 1}, ["ab"], ""]


def payload(size: int) -> dict[str, str]:
    """One that has so many bytes."""
    return {"a": "x" * (size - 8)}


VALUES: dict[str, list[Any]] = {
    "app": [ABSENT, None, "", "nobody", "Shop-ios", APP + " ", 7, *ODD],
    "token": [
        ABSENT, None, "a", "ab", "abc", "AbCd", "ab" * 100, "ab" * 100 + "a", "ab" * 101, "abcg", "ab 1", "ab\n",
        "<ab>", "١٢", 17, *ODD,
    ],
    "tokens": [
        ABSENT, None, [], ["ab"], ["ab", "CD12", "ab"], ["ab", "xyz"], ["xyz"], ["ab", 1], ["ab", None], "ab",
        ["ab", "a"], ["ab" * 100], ["ab" * 101], 1, {"a": "ab"},
    ],
    "channel": [
        ABSENT, None, "", "A", "a" * 256, "a" * 257, "a b", "a\n", "Zm9v+/=", "Zm9v-_", "é", 7, *ODD,
    ],
    "payload": [
        ABSENT, None, {}, {"aps": {"alert": "é😀\u2028"}}, payload(4096), payload(4097), payload(5120), payload(5121),
        {"a": "é" * 2044}, {"a": "é" * 2045}, [], [1], "{}", 1, True,
    ],
    "push_type": [
        ABSENT, None, "", "Alert", "alert ", "alert\n", "brandnew", "brand-new-2", "2new", "-new", "n" * 32, "n" * 33,
        "voipé", 1, *TYPES, *ODD,
    ],
    "priority": [ABSENT, None, 10, 5, 1, 0, -5, 7, 11, 261, 5.0, 5.5, "10", 2**31, 2**32 + 10, 10**39, *ODD],
    "expiration": [
        ABSENT, None, 0, 1, -1, 1_790_000_000, 9_999_999_999, 10_000_000_000, 1_790_000_000_123, 2**63 - 1, -(2**63),
        2**64, 1e3, 0.5, "0", "2026-07-05", *ODD,
    ],
    "collapse_id": [
        ABSENT, None, "a", "a b", " a", "a ", "a\n", "a\tb", "\x7f", "a" * 64, "a" * 65, "é" * 32, "é" * 33, "😀" * 16,
        "😀" * 17, "\x00", 7, *ODD,
    ],
    "id": [
        ABSENT, None, "x", " ", "a b ", "a\nb", "a\n", "\x7f", "\x00", "i" * 128, "i" * 129, "é" * 64, "é" * 65,
        "😀" * 32, "😀" * 33, "6F1C7C0E-5A0A-4B1E-8A2E-3F6F0A9D1B2C", "\u2028", 7, *ODD,
    ],
    "topic": [
        ABSENT, None, "c", "com.example.shop", "c" * 255, "c" * 256, "com example", "com\n", "cöm", "~!", "\x7f", 7,
        *("com.example.shop" + suffix for suffix in SUFFIXES), ".voip", "com.example.shop.voip.x", *ODD,
    ],
    "traceparent": [ABSENT, None, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-1-2-01", "é", 7, *ODD],
}  # fmt: skip

BASES: list[dict[str, Any]] = [
    {"app": APP, "token": "ab12", "payload": {"aps": {"alert": "Hi"}}},
    {"app": APP, "tokens": ["ab12", "cd34"], "payload": {}, "push_type": "background", "priority": 5},
    {"app": APP, "channel": CHANNEL, "payload": {"aps": {}}, "expiration": 1_790_000_000},
    {"app": APP, "token": "ab12", "payload": {}, "push_type": "voip", "topic": "com.example.shop.voip", "id": "x"},
    {"app": APP, "token": "ab12", "payload": {}, "push_type": "mdm", "collapse_id": "a", "expiration": 0},
]


def changed(base: dict[str, Any], field: str, value: Any) -> dict[str, Any]:
    made = {name: kept for name, kept in base.items() if name != field}
    if value is not ABSENT:
        made[field] = value
    return made


def cases(mixtures: int, seed: int = 20_261_130) -> Iterator[dict[str, Any]]:
    """Always the same ones for the same seed."""
    for base in BASES:
        yield base
        for field, values in VALUES.items():
            for value in values:
                yield changed(base, field, value)
    for kind in TYPES:
        for suffix in SUFFIXES:
            yield {**BASES[0], "push_type": kind, "topic": "com.example.shop" + suffix}
    for count in (999, 1000, 1001):
        yield {**changed(BASES[0], "token", ABSENT), "tokens": ["ab"] * count}
    source = random.Random(seed)
    for _ in range(mixtures):
        made = source.choice(BASES)
        for field in source.sample(sorted(VALUES), source.choice([2, 2, 3, 4])):
            made = changed(made, field, source.choice(VALUES[field]))
        yield made
