"""Inputs that once broke a law, by target: each is tried again in every run of the suite."""

FOUND: dict[str, tuple[bytes, ...]] = {
    "frames": (
        # The length of a frame whose last byte came alone was not looked at.
        b"\x02\x03\x01\xff\xff\xff\xff",
        bytes.fromhex(
            "0501030501280000002b3884a361736ba666696e697368a772657175657374ffffffff0fa46e616d65010000"
            "0000000001736800617265c200"
        ),
    ),
}
