#!/usr/bin/env python3
"""Creates tests/fixtures/resize.bin: results of Pillow's bilinear filter on noise.

Needs: pip install pillow==13.0.0 Format, little-endian: int32 number of cases; for each case nine int32 (height, width,
channels of the source; top, left, height, width of the box; height, width of the result), then the bytes of the result.
The source is not stored: its bytes come from a linear congruential generator, here and in the test.
"""
import pathlib
import struct

from PIL import Image

CASES = [
    # source, box, result
    ((61, 47, 3), (0, 0, 61, 47), (32, 32)),
    ((40, 30, 3), (3, 5, 31, 20), (56, 41)),
    ((375, 500, 3), (20, 61, 300, 411), (64, 64)),
    ((200, 150, 1), (0, 0, 200, 150), (24, 25)),
    ((33, 17, 1), (1, 2, 30, 13), (50, 40)),
    ((64, 64, 3), (10, 10, 1, 1), (5, 5)),
    ((90, 700, 3), (0, 0, 90, 700), (7, 9)),
]


def noise(count):
    state, out = 12345, bytearray()
    for _ in range(count):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        out.append(state >> 24)
    return bytes(out)


def main():
    content = struct.pack("<i", len(CASES))
    for (height, width, channels), (top, left, box_height, box_width), (out_height, out_width) in CASES:
        mode = "RGB" if channels == 3 else "L"
        image = Image.frombytes(mode, (width, height), noise(height * width * channels))
        part = image.crop((left, top, left + box_width, top + box_height))
        result = part.resize((out_width, out_height), Image.Resampling.BILINEAR)
        content += struct.pack("<9i", height, width, channels, top, left, box_height, box_width, out_height,
                               out_width)
        content += result.tobytes()
    path = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "resize.bin"
    path.write_bytes(content)
    print(f"{path.name}: {len(content)} bytes")


if __name__ == "__main__":
    main()
