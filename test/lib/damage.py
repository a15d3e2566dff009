"""Makes Parquet files that lie: small sound files with single bytes of their Thrift headers changed.

The byte patterns are compact Thrift: 15 nn is a 32-bit field after its predecessor, with a zigzag value.
"""

import base64
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as encryption

ROWS = 100
UNKNOWN = 0x64  # 50 in zigzag: no codec and no encoding has this number
COLUMN_CODEC = b"\x19\x18\x02id\x15"  # path_in_schema = ["id"], and the head of the field codec
PLAIN_DATA_PAGE = b"\x15\xc8\x01\x15\x00\x15\x06\x15\x06"  # 100 values, PLAIN, levels RLE
DICTIONARY_OF_TEN = b"\x4c\x15\x14\x15"
HUGE = b"\xff\xff\xff\x7f"


def write_sound(path, **options):
    """Columns id BIGINT and v VARCHAR, 100 rows in one row group; plain and not compressed unless options say so."""
    table = pa.table({"id": pa.array(range(ROWS), pa.int64()), "v": pa.array([f"s{i % 10}" for i in range(ROWS)])})
    settings = {"use_dictionary": False, "compression": "none", "write_statistics": False, **options}
    pq.write_table(table, path, **settings)
    return path


def column_offset(path, column):
    metadata = pq.read_metadata(path).row_group(0).column(column)
    return metadata.dictionary_page_offset or metadata.data_page_offset


def replace_at(path, offset, new):
    content = bytearray(path.read_bytes())
    content[offset:offset + len(new)] = new
    path.write_bytes(content)
    return path


def replace_found(path, pattern, new, start=0):
    """Replaces the first occurrence of a pattern by as many bytes."""
    offset = path.read_bytes().index(pattern, start)
    assert len(pattern) == len(new)
    return replace_at(path, offset, new)


def unknown_codec(path):
    return replace_found(write_sound(path), COLUMN_CODEC + b"\x00", COLUMN_CODEC + bytes([UNKNOWN]))


def unknown_encoding(path):
    new = PLAIN_DATA_PAGE[:4] + bytes([UNKNOWN]) + PLAIN_DATA_PAGE[5:]
    return replace_found(write_sound(path), PLAIN_DATA_PAGE, new)


def page_field_lies(path, field, high_byte):
    """field: 1 uncompressed size, 2 compressed size; each is a varint of two bytes after its head."""
    write_sound(path)
    return replace_at(path, column_offset(path, 0) + 2 + 3 * (field - 1) + 2, bytes([high_byte]))


def value_count_lies(path, count_bytes):
    return replace_found(write_sound(path), PLAIN_DATA_PAGE, b"\x15" + count_bytes + PLAIN_DATA_PAGE[3:])


def level_length_lies(path):
    """The definition levels of a v1 page begin with their length."""
    write_sound(path)
    levels = b"\x03\x00\x00\x00\xc8\x01\x01"
    return replace_found(path, levels, HUGE + levels[4:], column_offset(path, 0))


def string_length_lies(path):
    write_sound(path)
    first = b"\x02\x00\x00\x00s0"
    return replace_found(path, first, HUGE + b"s0", column_offset(path, 1))


def dictionary_index_too_large(path):
    """The dictionary page claims one value where ten are used."""
    write_sound(path, use_dictionary=["v"])
    return replace_found(path, DICTIONARY_OF_TEN, b"\x4c\x15\x02\x15", column_offset(path, 1))


def garbled_compression(path, codec):
    """Overwrites the middle of the first column's compressed page."""
    write_sound(path, compression=codec)
    size = pq.read_metadata(path).row_group(0).column(0).total_compressed_size
    return replace_at(path, column_offset(path, 0) + size // 2, b"\xff" * (size // 4))


def wrong_crc(path, version):
    """One bit of one value differs from what was written; only the page's checksum tells."""
    write_sound(path, write_page_checksum=True, data_page_version=version)
    offset = path.read_bytes().index((50).to_bytes(8, "little"), column_offset(path, 0))
    return replace_at(path, offset, b"\x33")


def truncated_page(path):
    """Data bytes are gone from the middle; the footer is whole and points where pages used to be."""
    content = write_sound(path).read_bytes()
    path.write_bytes(content[:500] + content[1200:])
    return path


def truncated_footer(path):
    content = write_sound(path).read_bytes()
    path.write_bytes(content[:-40])
    return path


def footer_length_lies(path, length):
    write_sound(path)
    return replace_at(path, path.stat().st_size - 8, length)


def garbled_footer(path):
    write_sound(path)
    return replace_at(path, path.stat().st_size - 200, b"\xff" * 150)


def empty(path):
    path.write_bytes(b"")
    return path


def only_magic(path):
    path.write_bytes(b"PAR1PAR1")
    return path


def text(path):
    path.write_text("id,v\n" + "1,not a Parquet file\n" * 40)
    return path


class NoKeyService(encryption.KmsClient):
    """Stands for a key management service: wraps keys by spelling them in base64."""

    def __init__(self, _config):
        super().__init__()

    def wrap_key(self, key_bytes, _master_key_identifier):
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key, _master_key_identifier):
        return base64.b64decode(wrapped_key)


def encrypted(path, plaintext_footer):
    table = pq.read_table(write_sound(pathlib.Path(path)))
    configuration = encryption.EncryptionConfiguration(
        footer_key="footer", column_keys={"column": ["id"]}, plaintext_footer=plaintext_footer)
    properties = encryption.CryptoFactory(NoKeyService).file_encryption_properties(
        encryption.KmsConnectionConfig(), configuration)
    with pq.ParquetWriter(path, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
    return path
