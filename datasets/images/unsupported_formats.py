"""Pictures of formats that are not read: known by their names and first bytes, so that they are told as what they are.

Trainers read JPEG, PNG and WebP; decoders of these formats are packages of their own.
"""

UNSUPPORTED_SUFFIXES = frozenset(
    {".heic", ".heif", ".avif", ".jxl"}
)  # of photographs: what else lies about in a folder is no sample

SIGNATURE_BYTES = 64  # bytes that tell
_BRANDS = {
    "AVIF": (b"avif", b"avis"),
    "HEIC": (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"),
}
_SIGNATURES = {
    "JPEG XL": (b"\xff\x0a", b"\0\0\0\x0cJXL "),
    "SVG": (b"<svg",),
    "PSD": (b"8BPS",),
}


def detect_unsupported_format(head: bytes) -> str:
    """Return the format of a picture by its first bytes, empty for one that is not known here."""
    found = [kind for kind, brands in _BRANDS.items() if head[4:8] == b"ftyp" and head[8:12] in brands]
    found += [kind for kind, starts in _SIGNATURES.items() if head.startswith(starts)]
    return found[0] if found else ""
