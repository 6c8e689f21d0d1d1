"""Bytes to messages and back, without IO: frames, greetings, links and clients."""

from octopis.core.wire.frames import FRAME_MAX, Frame, FrameDecoder, FrameKind
from octopis.core.wire.published import Published

__all__ = ["FRAME_MAX", "Frame", "FrameDecoder", "FrameKind", "Published"]
