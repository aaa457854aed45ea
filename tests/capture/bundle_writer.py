# SPDX-License-Identifier: Apache-2.0
"""Second writer and reader of bundles, made from spec/bundle_format.md alone. Needs numpy.

    python bundle_writer.py FILE...     checks files, lists their tensors, writes them again
    python bundle_writer.py --selftest  checks this module
"""

import math
import struct
import sys
from typing import NamedTuple

import numpy as np

MAGIC = b"KDTR\r\n\x1a\n"
VERSION = 1
MAX_TENSORS = 64
MAX_RANK = 4
PREAMBLE = struct.Struct("<8sIIQQ32s")
ENTRY = struct.Struct("<40sII4QQQ32s")
ALIGN = 64
U64_MAX = 2**64 - 1
SIZE_MAX = 2**63 - 1  # of the non-zero dimensions' product: an empty tensor can overflow too
CHECKSUM_OFFSET = 24

DTYPE_NUMBER = {"u8": 1, "i32": 2, "u32": 3, "i64": 4, "bf16": 5, "f32": 6, "f64": 7}
DTYPE_NAME = {number: name for name, number in DTYPE_NUMBER.items()}
# bf16 travels as its 16 bits.
NUMPY_TYPE = {"u8": "<u1", "i32": "<i4", "u32": "<u4", "i64": "<i8", "bf16": "<u2", "f32": "<f4",
              "f64": "<f8"}

LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyz")
NAME_BYTES = LETTERS | frozenset(b"0123456789_")
CASE_BYTES = NAME_BYTES | frozenset(b"-.")
CASE_FIRST = NAME_BYTES - frozenset(b"_")


class BundleError(Exception):
    """A failed check: its code on the page, and what the message names."""

    def __init__(self, code: str, field: str):
        super().__init__(f"KDTR_BUNDLE_{code} ({field})")
        self.code = code
        self.field = field


class Tensor(NamedTuple):
    """A named tensor. The array has NUMPY_TYPE[dtype] and the tensor's shape."""

    name: str
    dtype: str
    array: np.ndarray


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0xC96C5795D7870F42 if crc & 1 else 0)
        table.append(crc)
    return table


_CRC_TABLE = _crc_table()


def crc64(data: bytes) -> int:
    """CRC-64/XZ of data."""
    crc = U64_MAX
    for byte in data:
        crc = (crc >> 8) ^ _CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ U64_MAX


def file_checksum(data: bytes) -> int:
    """The checksum that belongs in a file: its own eight bytes count as zero."""
    return crc64(data[:CHECKSUM_OFFSET] + bytes(8) + data[CHECKSUM_OFFSET + 8:])


def with_checksum(data: bytes) -> bytes:
    """The file with the checksum that fits."""
    checksum = struct.pack("<Q", file_checksum(data))
    return data[:CHECKSUM_OFFSET] + checksum + data[CHECKSUM_OFFSET + 8:]


def round_up(offset: int) -> int:
    """The next multiple of 64."""
    return (offset + ALIGN - 1) // ALIGN * ALIGN


def padded_text(field: bytes, allowed: frozenset, first: frozenset) -> str | None:
    """Text of a NUL-padded field; None if it breaks the field's rule."""
    text, nul, padding = field.partition(b"\0")
    if not text or not nul or any(padding):
        return None
    if text[0] not in first or not allowed.issuperset(text):
        return None
    return text.decode("ascii")


def build(case_name: str, tensors: list[Tensor]) -> bytes:
    """The file's bytes. Raises BundleError with the code that a reader would give."""
    offset = PREAMBLE.size + ENTRY.size * len(tensors)
    table = b""
    data = b""
    for tensor in tensors:
        array = np.asarray(tensor.array)
        if array.dtype != np.dtype(NUMPY_TYPE[tensor.dtype]):
            raise TypeError(f"{tensor.name}: array of {array.dtype}, not {tensor.dtype}")
        if array.ndim > MAX_RANK:
            raise BundleError("SHAPE", tensor.name)
        name = tensor.name.encode("utf-8")
        if len(name) >= 40 or b"\0" in name:
            raise BundleError("NAME", tensor.name)
        start = round_up(offset)
        shape = array.shape + (1,) * (MAX_RANK - array.ndim)
        table += ENTRY.pack(name, DTYPE_NUMBER[tensor.dtype], array.ndim, *shape, start,
                            array.nbytes, bytes(32))
        data += bytes(start - offset) + array.tobytes("C")
        offset = start + array.nbytes
    case = case_name.encode("utf-8")
    if len(case) >= 32 or b"\0" in case:
        raise BundleError("HEADER", "case_name")
    preamble = PREAMBLE.pack(MAGIC, VERSION, len(tensors), offset, 0, case)
    built = with_checksum(preamble + table + data)
    parse(built)
    return built


def parse(data: bytes) -> tuple[str, list[Tensor]]:
    """Checks a file in the page's order; its case name and tensors. Raises BundleError."""
    if len(data) < PREAMBLE.size:  # step 1
        raise BundleError("TRUNCATED", "preamble")
    magic, version, count, file_bytes, checksum, case = PREAMBLE.unpack_from(data)
    if magic != MAGIC:  # step 2
        raise BundleError("MAGIC", "magic")
    if version != VERSION:  # step 3
        raise BundleError("VERSION", "version")
    if not 1 <= count <= MAX_TENSORS:  # step 4
        raise BundleError("HEADER", "tensor_count")
    if file_bytes > len(data):  # step 5
        raise BundleError("TRUNCATED", "file_bytes")
    if file_bytes < len(data):
        raise BundleError("TRAILING", "file_bytes")
    table_end = PREAMBLE.size + count * ENTRY.size
    if table_end > file_bytes:  # step 6
        raise BundleError("TRUNCATED", "tensor_table")
    if checksum != file_checksum(data):  # step 7
        raise BundleError("CHECKSUM", "checksum")
    case_name = padded_text(case, CASE_BYTES, CASE_FIRST)
    if case_name is None:  # step 8
        raise BundleError("HEADER", "case_name")
    tensors: list[Tensor] = []
    end = table_end
    for index in range(count):  # step 9
        tensor, end = _parse_entry(data, index, end, {t.name for t in tensors})
        tensors.append(tensor)
    if end != file_bytes:  # step 10
        raise BundleError("TRAILING", "file_bytes")
    return case_name, tensors


def _parse_entry(data: bytes, index: int, end: int, seen: set[str]) -> tuple[Tensor, int]:
    """Step 9 for one entry; end is where the data before it ends. The tensor and its end."""
    entry = ENTRY.unpack_from(data, PREAMBLE.size + index * ENTRY.size)
    raw_name, dtype_number, rank = entry[0:3]
    shape = entry[3:7]
    offset, size, reserved = entry[7:10]
    name = padded_text(raw_name, NAME_BYTES, LETTERS)
    if name is None:
        raise BundleError("NAME", f"entry {index}")
    if name in seen:
        raise BundleError("DUPLICATE", name)
    if dtype_number not in DTYPE_NAME:
        raise BundleError("DTYPE", name)
    dtype = DTYPE_NAME[dtype_number]
    if rank > MAX_RANK or any(dimension != 1 for dimension in shape[rank:]):
        raise BundleError("SHAPE", name)
    item = np.dtype(NUMPY_TYPE[dtype]).itemsize
    if item * math.prod(d for d in shape[:rank] if d) > SIZE_MAX:
        raise BundleError("SHAPE", name)
    if item * math.prod(shape[:rank]) != size:
        raise BundleError("SHAPE", name)
    if any(reserved):
        raise BundleError("HEADER", "reserved")
    if offset != round_up(end) or offset + size > len(data):
        raise BundleError("OFFSET", name)
    if any(data[end:offset]):
        raise BundleError("HEADER", "padding")
    array = np.frombuffer(data, NUMPY_TYPE[dtype], size // item, offset).reshape(shape[:rank])
    return Tensor(name, dtype, array), offset + size


def _failure(data: bytes) -> str:
    """Code of the first failed check, or "OK"."""
    try:
        parse(data)
    except BundleError as error:
        return error.code
    return "OK"


def _sample() -> bytes:
    """A small bundle with a scalar, an empty tensor and padding between tensors."""
    return build("self-test_1.0", [
        Tensor("scale", "f32", np.array(0.5, "<f4")),
        Tensor("empty", "i64", np.zeros((3, 0), "<i8")),
        Tensor("words", "u32", np.arange(6, dtype="<u4").reshape(2, 3)),
        Tensor("half", "bf16", np.array([0x3F80, 0x7FC0, 0x8000], "<u2")),
    ])


def _check(what: str, got, expected) -> None:
    if got != expected:
        raise SystemExit(f"selftest: {what}: got {got}, expected {expected}")


def _check_crafted(sample: bytes) -> int:
    """Step 9 and 10: files made wrong on purpose, their checksum made to fit."""
    entry = PREAMBLE.size + 2 * ENTRY.size  # "words": shape [2,3], offset 640, bytes 24
    quad = struct.Struct("<Q").pack
    edits = [
        ("HEADER", 32, b"A"), ("HEADER", 32, b"\0"), ("HEADER", 32, b"a" * 32),
        ("HEADER", 63, b"x"),
        ("NAME", entry, b"9"), ("NAME", entry, b"\0"), ("NAME", entry, b"a" * 40),
        ("NAME", entry + 39, b"x"), ("NAME", entry + 1, b"-"),
        ("DUPLICATE", entry, b"scale"),
        ("DTYPE", entry + 40, b"\0"), ("DTYPE", entry + 40, b"\x08"),
        ("SHAPE", entry + 44, b"\x05"), ("SHAPE", entry + 44, b"\x01"),
        ("SHAPE", entry + 64, quad(2)), ("SHAPE", entry + 48, quad(4)),
        ("SHAPE", entry + 48, quad(2 + 2**62)), ("SHAPE", entry + 88, quad(28)),
        ("SHAPE", entry + 48, quad(2**62) + quad(0) + sample[entry + 64:entry + 88] + quad(0)),
        ("HEADER", entry + 127, b"\1"),
        ("OFFSET", entry + 80, quad(576)), ("OFFSET", entry + 80, quad(2**64 - 64)),
        ("OFFSET", entry + 48, quad(2000) + sample[entry + 56:entry + 88] + quad(24000)),
        ("HEADER", 580, b"\1"),
    ]
    for number, (code, offset, new) in enumerate(edits):
        crafted = with_checksum(sample[:offset] + new + sample[offset + len(new):])
        _check(f"edit {number}", _failure(crafted), code)
    longer = sample[:16] + quad(len(sample) + 64) + sample[24:] + bytes(64)
    _check("bytes after the last tensor", _failure(with_checksum(longer)), "TRAILING")
    none = sample[:12] + bytes(4) + sample[16:]
    _check("no tensor", _failure(none), "HEADER")
    return len(edits) + 2


def selftest() -> None:
    """Round trip, every truncation, every single-bit and all-ones corruption, crafted files."""
    _check("CRC-64/XZ", crc64(b"123456789"), 0x995DC9BBDF1939FA)
    sample = _sample()
    case_name, tensors = parse(sample)
    _check("write again", build(case_name, tensors), sample)
    _check("appended byte", _failure(sample + b"\0"), "TRAILING")
    for length in range(len(sample)):
        _check(f"truncated to {length}", _failure(sample[:length]), "TRUNCATED")
    allowed = {"MAGIC", "VERSION", "HEADER", "TRUNCATED", "TRAILING", "CHECKSUM"}
    count = 0
    for offset in range(len(sample)):
        for flip in (1, 2, 4, 8, 16, 32, 64, 128, 255):
            corrupt = sample[:offset] + bytes([sample[offset] ^ flip]) + sample[offset + 1:]
            code = _failure(corrupt)
            _check(f"byte {offset} ^ {flip} is {code}", code in allowed, True)
            count += 1
    crafted = _check_crafted(sample)
    print(f"selftest: ok, {len(sample)} truncations, {count} corruptions, {crafted} crafted files")


def list_file(path: str) -> None:
    """Checks a file, lists its tensors and writes it again in memory."""
    with open(path, "rb") as file:
        data = file.read()
    case_name, tensors = parse(data)
    print(f"{path}: {case_name}, {len(data)} bytes")
    for tensor in tensors:
        print(f"  {tensor.name:14} {tensor.dtype:4} {list(tensor.array.shape)}")
    _check("written again", build(case_name, tensors) == data, True)


def main(arguments: list[str]) -> int:
    """Entry of the command line."""
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    if arguments == ["--selftest"]:
        selftest()
        return 0
    for path in arguments:
        try:
            list_file(path)
        except (OSError, BundleError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
