"""What the ends of channels say to each other, on the wire: posts that go one way share a frame."""

import msgspec

from octopis.core.delivery.posts import Post
from octopis.core.wire.frames import BodyDecoder, Frame, FrameKind, encode, encode_frame

POSTS_MAX = 1_000
"""How many posts share a frame."""


class Posts(msgspec.Struct, frozen=True):
    """Posts that came together."""

    posts: list[Post]


_posts = BodyDecoder[list[Post]](list[Post], "a batch of posts")


def encode_posts(posts: list[Post]) -> bytes:
    """Return the frame of posts."""
    return encode_frame(FrameKind.POSTS, encode(posts))


def decode_posts(frame: Frame) -> Posts | None:
    """Return the posts of a frame, None for other kinds, or raise ProtocolError."""
    return Posts(_posts.decode(frame.body)) if frame.kind == FrameKind.POSTS else None
