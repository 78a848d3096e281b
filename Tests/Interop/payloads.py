"""Payloads that a careless service changes on their way. Each is a valid JSON object, as bytes."""

import itertools
import random

STRINGS = [
    rb'"a\/b"', rb'"\u00e9"', '"é"'.encode(), '"😀"'.encode(), rb'"\ud83d\ude00"', rb'"\uD83D\uDE00"', rb'"\ud800"',
    rb'"\udc00 alone"', rb'"\ud83d\ud83d\ude00"', rb'"\u0000"', rb'"\u001f"', rb'"\b\f\n\r\t\"\\\/"', b'"\x7f"',
    b'"\xe2\x80\xa8\xe2\x80\xa9"', rb'"\u2028"', '"Ж中ى\u202eא"'.encode(), '"e\u0301 \u00e9"'.encode(),
    '"👩‍👩‍👧‍👦🏳️‍🌈"'.encode(), b'""', b'" "', b'"\xef\xbb\xbf"', b'"</script>&lt;"', b'"%s%n${ENV}"', b'"//"',
    rb'"\\u0041"', rb'"\u0041"', b'"\xf4\x8f\xbf\xbf"', b'"\xef\xbf\xbd\xef\xbf\xbf"', b'"null"', b'"}{]["',
]  # fmt: skip
NUMBERS = [
    b"0", b"-0", b"-0.0", b"0.0", b"1.0", b"1.10", b"1.000000000000000000000000000000001", b"1e2", b"1E+2", b"1e-2",
    b"1E400", b"1e400", b"-1e400", b"1e-400", b"0e0", b"0E-0", b"1e00000000000000000002", b"12345678901234567890",
    b"9007199254740993", b"-9223372036854775809", b"18446744073709551616", b"1180591620717411303424",
    b"1" + b"0" * 300, b"3.141592653589793238462643383279502884197", b"123456789.1234567890123456789e-7",
]  # fmt: skip
LITERALS = [b"true", b"false", b"null"]
BLANKS = [b"", b" ", b"\n", b"\t", b"\r\n", b"  \t\r\n "]
NAMES = [b'"id"', b'"app"', b'"payload"', b'"token"', rb'"\u0061ps"', b'""', b'"a.b"', '"ключ"'.encode(), rb'"\/"']


def by_hand() -> list[bytes]:
    """Structure rather than values: keys twice, depth, blanks, size."""
    made = [
        b"{}",
        b"{ }",
        b'{"aps":{}}',
        b'{"aps":{"alert":"a","alert":"b"},"aps":{"alert":"c"}}',
        b'{"a":1,"a":1.0,"a":true}',
        b'{"payload":{"payload":{"payload":{}}},"app":"other","token":"00","id":"not the id"}',
        rb'{"aps":{"alert":"a\/b ' + "😀 Ж".encode() + rb'","content-available":1},"id":12345678901234567890,'
        rb'"f":1.0,"e":1e2,"t":true,"n":null}',
        b'{"b":1,"a":2,"C":3,"B":4}',
        b'{"aps":{"badge":0,"mutable-content":1,"sound":{"critical":1,"volume":1.0}}}',
        b'{"aps":{"alert":"' + b"x" * 4076 + b'"}}',
        b'{"aps":{"alert":"' + "é".encode() * 2038 + b'"}}',
        b'{"many":[' + b",".join(b"%d" % number for number in range(900)) + b"]}",
        b'{"empty":[[],{},[{}],[[]]]}',
        b'{"aps":"not an object"}',
        b'{"' + b"k" * 1000 + b'":1}',
        rb'{"\"":"\"","\\":"\\"}',
    ]
    made += [b'{"deep":' + b"[" * depth + b"]" * depth + b"}" for depth in (2, 16, 32, 62)]
    made += [b'{"deep":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}" for depth in (2, 16, 32, 62)]
    return made


def values() -> list[bytes]:
    """Each string, number and literal by itself, once in `aps` and once beside it, with blanks that vary."""
    blanks = itertools.cycle(BLANKS)
    made = []
    for value in STRINGS + NUMBERS + LITERALS:
        space = next(blanks)
        made.append(b'{"aps":{"alert":"a"},"v":%b%b%b}' % (space, value, space))
        made.append(b'{%b"aps"%b:{"alert":[%b%b]}}' % (space, next(blanks), value, next(blanks)))
    return made


def generated(count: int, seed: int = 20_260_705) -> list[bytes]:
    """Random trees of all of the above; the same ones for the same seed."""
    source = random.Random(seed)

    def value(depth: int) -> bytes:
        kind = source.random()
        if depth == 0 or kind < 0.5:
            return source.choice(source.choice([STRINGS, NUMBERS, LITERALS]))
        if kind < 0.75:
            inner = [blank() + value(depth - 1) + blank() for _ in range(source.randrange(5))]
            return b"[" + (b",".join(inner) or blank()) + b"]"
        return tree(depth - 1)

    def blank() -> bytes:
        return source.choice(BLANKS)

    def tree(depth: int) -> bytes:
        members = [
            blank() + source.choice(NAMES + STRINGS) + blank() + b":" + blank() + value(depth) + blank()
            for _ in range(source.randrange(1, 6))
        ]
        return b"{" + b",".join(members) + b"}"

    made = []
    while len(made) < count:
        candidate = tree(4)
        if len(candidate) <= 4096:
            made.append(candidate)
    return made


def nasty(count: int = 120) -> list[bytes]:
    """All of them, each at most 4,096 bytes."""
    made = by_hand() + values() + generated(count)
    assert all(len(payload) <= 4096 for payload in made), [len(payload) for payload in made if len(payload) > 4096]
    return made
