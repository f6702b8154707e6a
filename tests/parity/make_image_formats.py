#!/usr/bin/env python3
"""Creates tests/fixtures/image_formats.safetensors: image files, and their pixels as Pillow decodes them.

Needs: pip install pillow==13.0.0 numpy safetensors

Each case is NAME.file, the bytes of a file, and NAME.pixels [H, W, 3], Image.open(file).convert("RGB"). Cases of masks
are NAME.file and NAME.indices [H, W]. The orientation is applied, as Pillow itself does for TIFF only. Of 16 bits the
higher 8 are expected, which Pillow takes of colors; grays it clips at 255, which leaves nothing of most images.
"""
import io
import pathlib
import struct
import zlib

import numpy as np
from PIL import Image, ImageOps
from safetensors.numpy import save_file

ROOT = pathlib.Path(__file__).resolve().parent.parent / "fixtures"
HEIGHT, WIDTH = 19, 27
tensors = {}


def picture(channels, seed, height=HEIGHT, width=WIDTH):
    """A smooth picture with some noise."""
    random = np.random.RandomState(seed)
    y, x = np.mgrid[0:height, 0:width]
    planes = [127 + 90 * np.sin(x / (3.0 + c) + seed) * np.cos(y / (4.0 + c)) for c in range(channels)]
    pixels = np.stack(planes, axis=-1) + random.randint(-20, 20, (height, width, channels))
    return np.clip(pixels, 0, 255).astype(np.uint8)


GRAY = Image.fromarray(picture(1, 1)[..., 0])
RGB = Image.fromarray(picture(3, 2))
RGBA = Image.merge("RGBA", (*RGB.split(), Image.fromarray(picture(1, 3)[..., 0])))
LA = Image.merge("LA", (GRAY, Image.fromarray(picture(1, 4)[..., 0])))
CMYK = Image.frombytes("CMYK", (WIDTH, HEIGHT), picture(4, 5).tobytes())
PALETTE = RGB.quantize(37)
SIXTEEN = Image.frombytes("I;16", (WIDTH, HEIGHT),
                          np.random.RandomState(6).randint(0, 65536, (HEIGHT, WIDTH)).astype("<u2").tobytes())
BITS = GRAY.convert("1")


def as_bytes(data):
    return np.frombuffer(data, np.uint8)


def keep(name, data, pixels=None):
    """A file; its pixels are those of Pillow if they are not given."""
    assert f"{name}.file" not in tensors, name
    if pixels is None:
        with Image.open(io.BytesIO(data)) as image:
            image.load()
            if image.format != "TIFF":  # Pillow applies the orientation of TIFF files alone.
                image = ImageOps.exif_transpose(image)
            pixels = np.array(image.convert("RGB"))
    tensors[f"{name}.file"] = as_bytes(data)
    tensors[f"{name}.pixels"] = np.ascontiguousarray(pixels)


def saved(image, format, **options):
    out = io.BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


def rgb_of_high_bytes(image):
    high = (np.array(image) >> 8).astype(np.uint8)
    return np.repeat(high[..., None], 3, axis=-1)


def webp_cases():
    for name, image in (("rgb", RGB), ("rgba", RGBA)):
        keep(f"webp.lossless_{name}", saved(image, "WEBP", lossless=True, exact=True))
        for quality in (10, 90):
            keep(f"webp.lossy_{name}_{quality}", saved(image, "WEBP", quality=quality, exact=True))
    keep("webp.odd", saved(Image.fromarray(picture(3, 7, 1, 1)), "WEBP", quality=80))
    second = Image.fromarray(255 - np.array(RGB))
    keep("webp.animation", saved(RGB, "WEBP", save_all=True, append_images=[second], lossless=True))
    exif = Image.Exif()
    for orientation in (3, 6):
        exif[0x0112] = orientation
        keep(f"webp.orientation_{orientation}", saved(RGB, "WEBP", lossless=True, exif=exif))


def gif_frame(colors, pixels, screen, place=(0, 0), local=False, transparent=None, interlace=False):
    """A GIF file with one image anywhere on a screen, whose pixels are those that Pillow compresses."""
    height, width = pixels.shape
    image = Image.frombytes("P", (width, height), pixels.tobytes())
    image.putpalette(colors.tobytes())
    whole = saved(image, "GIF", optimize=False, interlace=interlace)
    flags = whole[10]
    palette = whole[13:13 + (3 << ((flags & 7) + 1))]
    body = whole[whole.index(b",", 13 + len(palette)) + 10:]
    size_bits = flags & 7
    header = b"GIF89a" + struct.pack("<HH", *screen) + bytes([(0 if local else 0x80) | size_bits, 0, 0])
    if not local:
        header += palette
    if transparent is not None:
        header += b"!\xf9\x04" + bytes([1, 0, 0, transparent]) + b"\0"
    descriptor_flags = (0x80 | size_bits if local else 0) | (0x40 if interlace else 0)
    descriptor = b"," + struct.pack("<HHHH", *place, width, height) + bytes([descriptor_flags])
    return header + descriptor + (palette if local else b"") + body


def gif_cases():
    keep("gif.palette", saved(PALETTE, "GIF", interlace=False))
    keep("gif.interlaced", saved(PALETTE, "GIF", interlace=True))
    keep("gif.gray", saved(GRAY, "GIF"))
    keep("gif.bits", saved(BITS, "GIF"))
    keep("gif.noise", saved(Image.fromarray(np.random.RandomState(8).randint(0, 256, (90, 110)).astype(np.uint8)), "GIF"))
    keep("gif.one_color", saved(Image.new("RGB", (300, 200), (10, 200, 30)), "GIF"))
    keep("gif.animation", saved(PALETTE, "GIF", save_all=True, append_images=[RGB.rotate(180)], duration=100))
    keep("gif.transparent", saved(PALETTE, "GIF", transparency=5))
    random = np.random.RandomState(9)
    colors = random.randint(0, 256, (16, 3)).astype(np.uint8)
    pixels = random.randint(0, 16, (7, 9)).astype(np.uint8)
    keep("gif.part", gif_frame(colors, pixels, (20, 15), (4, 3)))
    keep("gif.part_transparent", gif_frame(colors, pixels, (20, 15), (4, 3), transparent=7))
    keep("gif.beyond_screen", gif_frame(colors, pixels, (10, 5), (4, 3)))
    keep("gif.local_palette", gif_frame(colors, pixels, (9, 7), local=True))
    keep("gif.interlaced_part", gif_frame(colors, pixels, (12, 12), (1, 2), interlace=True))


def tiff_cases():
    kinds = {"gray": GRAY, "rgb": RGB, "rgba": RGBA, "la": LA, "cmyk": CMYK, "palette": PALETTE, "bits": BITS}
    for name, image in kinds.items():
        keep(f"tiff.{name}", saved(image, "TIFF"))
        keep(f"tiff.{name}_lzw", saved(image, "TIFF", compression="tiff_lzw"))
    for compression in ("tiff_adobe_deflate", "tiff_deflate", "packbits", "zstd", "lzma"):
        keep(f"tiff.{compression}", saved(RGB, "TIFF", compression=compression))
    keep("tiff.predictor", saved(RGB, "TIFF", compression="tiff_lzw", tiffinfo={317: 2}))
    for compression in ("group3", "group4", "tiff_ccitt"):
        keep(f"tiff.{compression}", saved(BITS, "TIFF", compression=compression))
    for name, image in (("gray", GRAY), ("rgb", RGB), ("cmyk", CMYK)):
        keep(f"tiff.jpeg_{name}", saved(image, "TIFF", compression="jpeg"))
    keep("tiff.jpeg_ycbcr", saved(RGB.convert("YCbCr"), "TIFF", compression="jpeg"))
    keep("tiff.strips", saved(RGB, "TIFF", compression="tiff_lzw", strip_size=WIDTH * 3 * 5))
    keep("tiff.big", saved(RGB, "TIFF", big_tiff=True))
    keep("tiff.pages", saved(RGB, "TIFF", save_all=True, append_images=[GRAY]))
    keep("tiff.sixteen", saved(SIXTEEN, "TIFF"), rgb_of_high_bytes(SIXTEEN))
    keep("tiff.sixteen_deflate", saved(SIXTEEN, "TIFF", compression="tiff_adobe_deflate"), rgb_of_high_bytes(SIXTEEN))
    for orientation in range(2, 9):
        keep(f"tiff.orientation_{orientation}", saved(RGB, "TIFF", tiffinfo={274: orientation}))
    hand_made_tiff_cases()


def tiff(tags, data, big_endian=False):
    """A TIFF file with these tags, {tag: (type, values)}, and data in one strip, or in the tiles or planes given."""
    order = ">" if big_endian else "<"
    pieces = data if isinstance(data, list) else [data]
    offsets, at = [], 8
    for piece in pieces:
        offsets.append(at)
        at += len(piece)
    is_tiled = 322 in tags
    tags = dict(tags)
    tags[324 if is_tiled else 273] = (4, offsets)
    tags[325 if is_tiled else 279] = (4, [len(piece) for piece in pieces])
    body, extra = b"", b""
    directory = at + (at % 2)
    extra_at = directory + 2 + 12 * len(tags) + 4
    for tag, (kind, values) in sorted(tags.items()):
        raw = struct.pack(f"{order}{len(values)}{'H' if kind == 3 else 'I'}", *values)
        if len(raw) > 4:
            value = struct.pack(order + "I", extra_at + len(extra))
            extra += raw
        else:
            value = raw.ljust(4, b"\0")
        body += struct.pack(order + "HHI", tag, kind, len(values)) + value
    start = (b"MM\0*" if big_endian else b"II*\0") + struct.pack(order + "I", directory)
    return (start + b"".join(pieces) + b"\0" * (at % 2) + struct.pack(order + "H", len(tags)) + body + b"\0\0\0\0" + extra)


def tags_of(height, width, bits, photometric, **more):
    tags = {256: (4, [width]), 257: (4, [height]), 258: (3, bits), 259: (3, [1]), 262: (3, [photometric]),
            277: (3, [len(bits)]), 278: (4, [height])}
    return {**tags, **{int(tag[1:]): value for tag, value in more.items()}}


def hand_made_tiff_cases():
    random = np.random.RandomState(10)
    bytes_of = lambda *shape: random.randint(0, 256, shape).astype(np.uint8)
    for big_endian in (False, True):
        name = "be" if big_endian else "le"
        wide = random.randint(0, 65536, (5, 7, 4))
        raw = wide.astype(">u2" if big_endian else "<u2")
        keep(f"tiff.rgb16_{name}", tiff(tags_of(5, 7, [16] * 3, 2), raw[..., :3].tobytes(), big_endian))
        keep(f"tiff.rgba16_{name}", tiff(tags_of(5, 7, [16] * 4, 2, t338=(3, [2])), raw.tobytes(), big_endian))
        keep(f"tiff.rgba16_premultiplied_{name}",
             tiff(tags_of(5, 7, [16] * 4, 2, t338=(3, [1])), raw.tobytes(), big_endian))
        keep(f"tiff.cmyk16_{name}", tiff(tags_of(5, 7, [16] * 4, 5), raw.tobytes(), big_endian))
    for bits in (1, 2, 4, 8):
        row_bytes = (7 * bits + 7) // 8
        data = bytes_of(5, row_bytes).tobytes()
        keep(f"tiff.white_is_0_{bits}", tiff(tags_of(5, 7, [bits], 0), data))
        keep(f"tiff.gray_{bits}", tiff(tags_of(5, 7, [bits], 1), data))
        colors = [value * 257 for value in bytes_of(3 << bits).tolist()]
        keep(f"tiff.palette_{bits}", tiff(tags_of(5, 7, [bits], 3, t320=(3, colors)), data))
    keep("tiff.fill_order", tiff(tags_of(5, 7, [1], 1, t266=(3, [2])), bytes_of(5).tobytes()))
    premultiplied = bytes_of(5, 7, 4)
    premultiplied[0, :, 3] = [0, 1, 2, 100, 254, 255, 0]
    keep("tiff.premultiplied", tiff(tags_of(5, 7, [8] * 4, 2, t338=(3, [1])), premultiplied.tobytes()))
    keep("tiff.unspecified_extra", tiff(tags_of(5, 7, [8] * 5, 2, t338=(3, [0, 0])), bytes_of(5, 7, 5).tobytes()))
    planes = [bytes_of(5, 7).tobytes() for _ in range(3)]
    keep("tiff.planes", tiff(tags_of(5, 7, [8] * 3, 2, t284=(3, [2])), planes))
    tiles = [bytes_of(16, 16, 3).tobytes() for _ in range(6)]
    tags = tags_of(20, 40, [8] * 3, 2, t322=(3, [16]), t323=(3, [16]))
    del tags[278]
    keep("tiff.tiles", tiff(tags, tiles))


def png_cases():
    for name, image in (("palette", PALETTE), ("la", LA), ("rgba", RGBA), ("bits", BITS)):
        keep(f"png.{name}", saved(image, "PNG"))
    for bits in (1, 2, 4):
        keep(f"png.palette_{bits}", saved(RGB.quantize(1 << bits), "PNG", bits=bits))
    keep("png.transparent_palette", saved(PALETTE, "PNG", transparency=3))
    keep("png.sixteen", saved(SIXTEEN, "PNG"), rgb_of_high_bytes(SIXTEEN))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    for kind, channels in ((2, 3), (6, 4), (4, 2)):
        wide = np.random.RandomState(kind).randint(0, 65536, (6, 5, channels)).astype(">u2")
        rows = b"".join(b"\0" + row.tobytes() for row in wide)
        keep(f"png.sixteen_{channels}", b"\x89PNG\r\n\x1a\n" +
             chunk(b"IHDR", struct.pack(">IIBBBBB", 5, 6, 16, kind, 0, 0, 0)) +
             chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def jpeg_cases():
    for quality in (50, 95):
        keep(f"jpeg.cmyk_{quality}", saved(CMYK, "JPEG", quality=quality))
    # YCCK: the transform in Adobe's marker says that the inks were converted like RGB.
    inks = saved(CMYK, "JPEG", quality=95)
    marker = inks.index(b"Adobe")
    ycck = inks[:marker + 11] + b"\x02" + inks[marker + 12:]
    keep("jpeg.ycck", ycck)
    segment = marker - 4
    length = struct.unpack(">H", inks[segment + 2:segment + 4])[0]
    keep("jpeg.cmyk_without_adobe", inks[:segment] + inks[segment + 2 + length:])


def mask_cases():
    indices = np.random.RandomState(11).randint(0, 16, (9, 13)).astype(np.uint8)
    mask = Image.frombytes("P", (13, 9), indices.tobytes())
    mask.putpalette(np.random.RandomState(12).randint(0, 256, (16, 3)).astype(np.uint8).tobytes())
    for format, options in (("PNG", {}), ("PNG", {"bits": 4}), ("GIF", {"optimize": False}), ("TIFF", {"compression": "tiff_lzw"})):
        name = f"mask.{format.lower()}_{options.get('bits', 8)}"
        data = saved(mask, format, **options)
        with Image.open(io.BytesIO(data)) as image:
            assert image.mode == "P" and (np.array(image) == indices).all(), name
        tensors[f"{name}.file"] = as_bytes(data)
        tensors[f"{name}.indices"] = indices
    for format in ("PNG", "TIFF"):
        bits = (indices > 7).astype(np.uint8)
        data = saved(Image.fromarray(bits * 255).convert("1"), format)
        with Image.open(io.BytesIO(data)) as image:
            assert image.mode == "1" and (np.array(image) == bits).all()
        tensors[f"mask.{format.lower()}_1.file"] = as_bytes(data)
        tensors[f"mask.{format.lower()}_1.indices"] = bits


def refused_cases():
    """Files that are valid and not read."""
    files = {"floats": saved(GRAY.convert("F"), "TIFF"), "signed": saved(GRAY.convert("I"), "TIFF"),
             "lab": tiff(tags_of(2, 2, [8] * 3, 8), bytes(12)), "logluv": tiff(tags_of(2, 2, [8] * 3, 32845), bytes(12)),
             "jpeg6": tiff({**tags_of(2, 2, [8] * 3, 2), 259: (3, [6])}, bytes(12)),
             "bits12": tiff(tags_of(2, 2, [12], 1), bytes(6)), "inks": tiff(tags_of(2, 2, [8] * 4, 5, t332=(3, [2])), bytes(16)),
             "wide_mask": saved(SIXTEEN, "PNG")}
    for name, data in files.items():
        tensors[f"refused.{name}.file"] = as_bytes(data)


webp_cases()
gif_cases()
tiff_cases()
png_cases()
jpeg_cases()
mask_cases()
refused_cases()
save_file(tensors, ROOT / "image_formats.safetensors")
print(len(tensors), "tensors,", sum(t.nbytes for t in tensors.values()), "bytes")
