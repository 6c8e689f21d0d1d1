"""Bytes to messages and back, without IO: frames, greetings, links and clients."""

from octopis.wire.frames import FRAME_MAX, Frame, FrameDecoder, Kind
from octopis.wire.published import Published

__all__ = ["FRAME_MAX", "Frame", "FrameDecoder", "Kind", "Published"]
