"""Kubernetes' protobuf form, as far as kubectl uses it: it creates namespaces and secrets with it. The numbers of the
fields are those of k8s.io/api/core/v1/generated.proto and of apimachinery's."""

import base64

MAGIC = b"k8s\0"


def _fields(data: bytes) -> list[tuple[int, bytes]]:
    """The fields that have a length; numbers are passed over."""
    found, place = [], 0

    def varint() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = data[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(data):
        tag = varint()
        match tag & 7:
            case 0:
                varint()
            case 2:
                length = varint()
                found.append((tag >> 3, data[place : place + length]))
                place += length
            case other:
                raise ValueError(f"wire type {other}")
    return found


def _pairs(fields: list[tuple[int, bytes]], number: int) -> dict[str, bytes]:
    entries = [dict(_fields(value)) for each, value in fields if each == number]
    return {entry[1].decode(): entry.get(2, b"") for entry in entries}


def read(data: bytes) -> dict:
    """The object of a request's body."""
    unknown = dict(_fields(data.removeprefix(MAGIC)))
    kind = dict(_fields(unknown[1]))
    fields = _fields(unknown[2])
    meta = dict(fields)[1]
    names = dict(_fields(meta))
    metadata: dict[str, object] = {"name": names[1].decode()}
    if namespace := names.get(3):
        metadata["namespace"] = namespace.decode()
    if labels := _pairs(_fields(meta), 11):
        metadata["labels"] = {name: value.decode() for name, value in labels.items()}
    made: dict[str, object] = {"apiVersion": kind[1].decode(), "kind": kind[2].decode(), "metadata": metadata}
    if made["kind"] == "Secret":
        made["data"] = {name: base64.b64encode(value).decode() for name, value in _pairs(fields, 2).items()}
        made["type"] = dict(fields).get(3, b"Opaque").decode() or "Opaque"
    elif made["kind"] != "Namespace":
        raise ValueError(f"{made['kind']} in protobuf is not understood")
    return made
