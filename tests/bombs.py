"""Small files that unpack to gigabytes, made without unpacking them: a packed piece is repeated."""

import bz2
import gzip
import io
import lzma
import struct
import zipfile
import zlib
from pathlib import Path

MEGABYTE = 2**20


def repeated_deflate(head: bytes, piece: bytes, times: int) -> bytes:
    """Return a deflate stream of a head and a piece many times; each flush forgets what came before."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    first = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    middle = packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH)
    return first + middle * times + zlib.compressobj(9, zlib.DEFLATED, -15).flush()


def gzip_stream(head: bytes, piece: bytes, times: int) -> bytes:
    """Return a gzip file of one member (its checksum is not right, but nobody gets that far)."""
    return gzip.compress(b"")[:10] + repeated_deflate(head, piece, times) + bytes(8)


def gzip_members(head: bytes, piece: bytes, times: int) -> bytes:
    return gzip.compress(head) + gzip.compress(piece) * times


def bzip2_streams(head: bytes, piece: bytes, times: int) -> bytes:
    return bz2.compress(head) + bz2.compress(piece) * times


def xz_streams(head: bytes, piece: bytes, times: int) -> bytes:
    return lzma.compress(head) + lzma.compress(piece) * times


def zip_member(head: bytes, piece: bytes, times: int, claimed: int | None = None, name: str = "a.csv") -> bytes:
    """Return a zip file of one member, which claims its true size or another one."""
    packed = repeated_deflate(head, piece, times)
    size = len(head) + len(piece) * times if claimed is None else claimed
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, b"")
        (info,) = archive.infolist()
        archive.fp.seek(0)
        archive.fp.truncate()
        info.file_size, info.compress_size = min(size, 2**32 - 2), len(packed)
        archive.fp.write(info.FileHeader() + packed)
        archive.start_dir, archive._didModify = archive.fp.tell(), True
    return content.getvalue()


def xz_with_window(log_size: int) -> bytes:
    """Return an xz file that claims to need a window of two to this power of bytes."""
    content = bytearray(lzma.compress(b"x\n1\n" * 1000, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 2**16}]))
    start = 12  # after the header of the stream: length, flags, filter, length of its properties, the window
    content[start + 4] = (log_size - 12) * 2
    end = start + 4 * (content[start] + 1)
    content[end - 4 : end] = struct.pack("<I", zlib.crc32(content[start : end - 4]))
    return bytes(content)


def crowded_zip(num_members: int) -> bytes:
    """Return a zip file of so many empty members, all of them in one place."""
    listed = []
    for number in range(num_members):
        name = b"%x" % number
        fields = (20, 20, 0, 0, 0, 33, 0, 0, 0, len(name), 0, 0, 0, 0, 0, 0)
        listed.append(struct.pack("<4s6H3I5H2I", b"PK\x01\x02", *fields) + name)
    first = struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, 0, 0, 0, 33, 0, 0, 0, 1, 0) + b"0"
    directory = b"".join(listed)
    return first + directory + struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 0, 0, len(directory), len(first), 0)


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


# --- Parquet ----------------------------------------------------------------------------

I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12


def varint(number: int) -> bytes:
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def thrift(*fields: tuple[int, int, object]) -> bytes:
    """Return a struct in Thrift's compact form: fields of a number, a kind and a value (for lists: kind and items)."""
    content, before = b"", 0
    for number, kind, value in fields:
        content += bytes([(number - before) << 4 | kind])
        if kind == LIST:
            items, of_kind = value[1], value[0]
            content += bytes([len(items) << 4 | of_kind]) + b"".join(items)
        elif kind in (I32, I64):
            content += varint(2 * value)
        else:
            content += varint(len(value)) + value if kind == BINARY else value
        before = number
    return content + b"\0"


def integers(*values: int) -> tuple[int, list[bytes]]:
    return I32, [varint(2 * value) for value in values]


def parquet(pages: bytes, first: int, num_rows: int, kind: int, codec: int, size: int) -> bytes:
    """Return a Parquet file of one column "x" with these pages, and a description that says what it is told to."""
    text = varint(1) + b"x"
    meta = thrift(
        (1, I32, kind), (2, LIST, integers(0, 3, 8)), (3, LIST, (BINARY, [text])), (4, I32, codec), (5, I64, num_rows),
        (6, I64, size), (7, I64, len(pages)), (9, I64, 4 + first), *([(11, I64, 4)] if first else []),
    )  # fmt: skip
    group = thrift((1, LIST, (STRUCT, [thrift((2, I64, 4), (3, STRUCT, meta))])), (2, I64, size), (3, I64, num_rows))
    schema = [thrift((4, BINARY, b"schema"), (5, I32, 1)), thrift((1, I32, kind), (3, I32, 0), (4, BINARY, b"x"))]
    whole = thrift((1, I32, 1), (2, LIST, (STRUCT, schema)), (3, I64, num_rows), (4, LIST, (STRUCT, [group])))
    return b"PAR1" + pages + whole + struct.pack("<I", len(whole)) + b"PAR1"


def repeated_value(value: bytes, kind: int, times: int, codec: int = 0, claimed: int | None = None) -> bytes:
    """Return a Parquet file of one value that stands in many rows, and claims its true number of rows or another."""
    pack = gzip.compress if codec else bytes
    run = b"\x01" + varint(2 * times) + b"\0"
    first, second = pack(value), pack(run)
    listed = thrift(
        (1, I32, 2), (2, I32, len(value)), (3, I32, len(first)), (7, STRUCT, thrift((1, I32, 1), (2, I32, 0)))
    )
    levels = thrift((1, I32, times), (2, I32, 8), (3, I32, 3), (4, I32, 3))
    data = thrift((1, I32, 0), (2, I32, len(run)), (3, I32, len(second)), (5, STRUCT, levels))
    num_rows = times if claimed is None else claimed
    return parquet(listed + first + data + second, len(listed + first), num_rows, kind, codec, 100)


def one_large_page(megabytes: int) -> bytes:
    """Return a Parquet file of ten rows whose page unpacks to so many megabytes, of which its description is silent."""
    packed = gzip_stream(b"", bytes(MEGABYTE), megabytes)
    levels = thrift((1, I32, 10), (2, I32, 0), (3, I32, 3), (4, I32, 3))
    header = thrift((1, I32, 0), (2, I32, megabytes * MEGABYTE), (3, I32, len(packed)), (5, STRUCT, levels))
    return parquet(header + packed, 0, 10, 5, 2, 100)
