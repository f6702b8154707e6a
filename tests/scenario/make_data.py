"""Creates small data sets in plain Python, so that scenarios need neither downloads nor packages.

Images of class k are noise with a bright bar at row k, so that a model can learn them.
"""

import json
import os
import random
import struct
import tarfile
import io
import zipfile
import zlib


def pixels(rng, label, size, channels):
    rows = []
    for y in range(size):
        base = 200 if y == label % size else 40
        rows.append(bytes(min(255, max(0, base + rng.randrange(-30, 31))) for _ in range(size * channels)))
    return rows


def png(rows, size, channels, orientation=1):
    def chunk(kind, body):
        return (struct.pack(">I", len(body)) + kind + body +
                struct.pack(">I", zlib.crc32(kind + body)))
    color = 2 if channels == 3 else 0
    header = struct.pack(">IIBBBBB", size, len(rows), 8, color, 0, 0, 0)
    # A TIFF directory with only the orientation.
    exif = chunk(b"eXIf", struct.pack("<2sHIHHHIHHI", b"II", 42, 8, 1, 0x112, 3, 1, orientation, 0, 0))
    body = zlib.compress(b"".join(b"\0" + row for row in rows))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + (exif if orientation != 1 else b"") +
            chunk(b"IDAT", body) + chunk(b"IEND", b""))


def make_idx(folder, count, size=12, classes=10):
    """The four files of MNIST, with `count` training and `count // 2` test images."""
    rng = random.Random(1)
    for part, images in (("train", count), ("t10k", count // 2)):
        labels = bytes(i % classes for i in range(images))
        with open(os.path.join(folder, f"{part}-labels-idx1-ubyte"), "wb") as file:
            file.write(struct.pack(">II", 0x801, images) + labels)
        with open(os.path.join(folder, f"{part}-images-idx3-ubyte"), "wb") as file:
            file.write(struct.pack(">IIII", 0x803, images, size, size))
            for label in labels:
                file.write(b"".join(pixels(rng, label, size, 1)))


def make_folder(folder, count, size=12, classes=4, gray=0, turned=0, flat_test=0, wide=0):
    """SPLIT/class_K/N.png for training and test; the first `gray` training images are grayscale and the first `turned`
    are stored rotated; the test split may have no classes, and its first `wide` images are twice as wide as high."""
    rng = random.Random(2)
    for part, images in (("train", count), ("test", count // 2)):
        for i in range(images):
            flat = flat_test and part == "test"
            target = os.path.join(folder, part, "" if flat else f"class_{i % classes}")
            os.makedirs(target, exist_ok=True)
            channels = 1 if part == "train" and i < gray else 3
            turns = part == "train" and i < turned
            width = 2 * size if part == "test" and i < wide else size
            with open(os.path.join(target, f"{i:05}.png"), "wb") as file:
                rows = pixels(rng, i % classes, width, channels)[:size]
                file.write(png(rows, width, channels, 6 if turns else 1))


def add_file(tar, name, body):
    info = tarfile.TarInfo(name)
    info.size = len(body)
    tar.addfile(info, io.BytesIO(body))


def make_tar(folder, count, size=12, classes=4):
    """WebDataset shards train-0000.tar, train-0001.tar and test-0000.tar with .png and .cls."""
    rng = random.Random(3)
    for name, images in (("train-0000", count // 2), ("train-0001", count // 2), ("test-0000", count // 2)):
        with tarfile.open(os.path.join(folder, name + ".tar"), "w") as tar:
            for i in range(images):
                add_file(tar, f"{name}/{i:05}.png", png(pixels(rng, i % classes, size, 3), size, 3))
                add_file(tar, f"{name}/{i:05}.cls", str(i % classes).encode())


def make_links(folder, count, size=12, classes=4, dangling=0):
    """links.tar: `count` images in train/class_K, each with a hard and a symbolic link, one before its target; and
    dangling links."""
    rng = random.Random(5)
    with tarfile.open(os.path.join(folder, "links.tar"), "w") as tar:
        for i in range(count):
            place = f"train/class_{i % classes}"
            for name, kind, target in ((f"sym{i}.png", tarfile.SYMTYPE, f"{i:05}.png"),
                                       (f"hard{i}.png", tarfile.LNKTYPE, f"{place}/{i:05}.png")):
                link = tarfile.TarInfo(f"{place}/{name}")
                link.type, link.linkname = kind, target
                tar.addfile(link)
            add_file(tar, f"{place}/{i:05}.png", png(pixels(rng, i % classes, size, 3), size, 3))
        for i in range(dangling):
            link = tarfile.TarInfo(f"train/class_0/nowhere{i}.png")
            link.type, link.linkname = tarfile.SYMTYPE, "../../../elsewhere.png"
            tar.addfile(link)


def make_odd(folder, count, size=12, classes=4):
    """odd.tar: `count` valid samples, then one image without a label, a label without an image, two invalid labels, and
    an image among system files."""
    rng = random.Random(6)
    with tarfile.open(os.path.join(folder, "odd.tar"), "w") as tar:
        image = png(pixels(rng, 0, size, 3), size, 3)
        for i in range(count):
            add_file(tar, f"{i:05}.png", png(pixels(rng, i % classes, size, 3), size, 3))
            add_file(tar, f"{i:05}.cls", str(i % classes).encode())
        add_file(tar, "unlabeled.png", image)
        add_file(tar, "lonely.cls", b"1")
        for name, label in (("word", b"cat"), ("empty", b"")):
            add_file(tar, f"{name}.png", image)
            add_file(tar, f"{name}.cls", label)
        add_file(tar, "__MACOSX/._00000.png", b"x")


def make_text(folder, count):
    """`count` lines of a small grammar in one file, text.txt."""
    rng = random.Random(4)
    with open(os.path.join(folder, "text.txt"), "w", encoding="utf-8") as file:
        for _ in range(count):
            file.write(f"{rng.choice(['the', 'a'])} {rng.choice(['horse', 'mare', 'foal'])} "
                       f"{rng.choice(['runs', 'gallops', 'rests'])}.\n")


def make_shapes(folder, count, size=16):
    """SPLIT/images/N.png, a square (class 1) and a disc (class 2) on noise, and SPLIT/masks/N.png, their classes; a row
    of pixels is ignored."""
    rng = random.Random(7)
    for part, images in (("train", count), ("test", count // 2)):
        for kind in ("images", "masks"):
            os.makedirs(os.path.join(folder, part, kind), exist_ok=True)
        for i in range(images):
            mask = [[0] * size for _ in range(size)]
            top, left, side = rng.randrange(size // 2), rng.randrange(size // 2), rng.randrange(3, size // 3)
            middle, across, radius = rng.randrange(size // 2, size), rng.randrange(size), size // 6
            for y in range(size):
                for x in range(size):
                    if (y - middle) ** 2 + (x - across) ** 2 <= radius**2:
                        mask[y][x] = 2
                    elif top <= y < top + side and left <= x < left + side:
                        mask[y][x] = 1
            image = [bytes((30, 130, 220)[value] + rng.randrange(-20, 21) for value in row) for row in mask]
            mask[0] = [255] * size
            for kind, rows in (("images", image), ("masks", [bytes(row) for row in mask])):
                with open(os.path.join(folder, part, kind, f"{i:05}.png"), "wb") as file:
                    file.write(png(rows, size, 1))


def make_table(folder, count):
    """train.csv and test.csv: a price that is linear in size and rooms, two labels, a kind, and an id."""
    rng = random.Random(8)
    for part, rows in (("train", count), ("test", count // 2)):
        with open(os.path.join(folder, part + ".csv"), "w", encoding="utf-8") as file:
            file.write("id,size,rooms,old,large,kind,price\n")
            for i in range(rows):
                size, rooms = rng.uniform(20, 200), rng.randrange(1, 8)
                old = int(rooms > 4)
                price = 0.05 * size + 0.5 * rooms + rng.gauss(0, 0.1)
                kind = "flat" if size < 100 else "house"
                file.write(f"h{i},{size:.3f},{rooms},{old},{int(size > 110)},{kind},{price:.4f}\n")


def sentence(rng):
    """A sentence about a person and a place: words, their tags (CoNLL-2003, IOB2), and whether it is about food."""
    about_food = rng.random() < 0.5
    words = ["", rng.choice(["eats", "cooks", "bakes"] if about_food else ["runs", "swims", "rides"]), "in", ""]
    tags = ["B-PER", "O", "O", "B-LOC"]
    words[0], words[3] = rng.choice(["Ada", "Bert", "Cleo"]), rng.choice(["Rome", "Oslo", "Lima"])
    for at, word, tag in ((4, "City", "I-LOC"), (1, "Smith", "I-PER")):
        if rng.random() < 0.3:
            words.insert(at, word)
            tags.insert(at, tag)
    if rng.random() < 0.3:
        words.insert(0, "today")
        tags.insert(0, "O")
    return words, tags, about_food


def make_labeled(folder, count):
    """train.jsonl and test.csv: sentences of 4 to 7 words with the label food or sport."""
    rng = random.Random(9)
    with open(os.path.join(folder, "train.jsonl"), "w", encoding="utf-8") as file:
        for _ in range(count):
            words, _, about_food = sentence(rng)
            file.write(json.dumps({"text": " ".join(words), "label": "food" if about_food else "sport"}) + "\n")
    with open(os.path.join(folder, "test.csv"), "w", encoding="utf-8") as file:
        file.write("label,text\n")
        for _ in range(count // 2):
            words, _, about_food = sentence(rng)
            file.write(f"{'food' if about_food else 'sport'},{' '.join(words)}\n")


def make_documents(folder, count):
    """train.jsonl and val.jsonl: documents of 1 to 6 such sentences, most of them short."""
    rng = random.Random(12)
    for part, documents in (("train", count), ("val", count // 4)):
        with open(os.path.join(folder, part + ".jsonl"), "w", encoding="utf-8") as file:
            for _ in range(documents):
                sentences = [" ".join(sentence(rng)[0]) for _ in range(min(rng.randint(1, 6), rng.randint(1, 6)))]
                file.write(json.dumps({"text": " ".join(sentences)}) + "\n")


def make_tagged(folder, count):
    """train.conll and test.conll: such sentences with their tags."""
    rng = random.Random(10)
    for part, sentences in (("train", count), ("test", count // 2)):
        with open(os.path.join(folder, part + ".conll"), "w", encoding="utf-8") as file:
            file.write("-DOCSTART- O\n\n")
            for _ in range(sentences):
                words, tags, _ = sentence(rng)
                file.writelines(f"{word} {tag}\n" for word, tag in zip(words, tags))
                file.write("\n")


def make_pairs(folder, count):
    """train.jsonl and test.csv: questions of four words with an answer, which has these words spelled backwards."""
    rng = random.Random(11)
    names, verbs = ["Ada", "Bert", "Cleo", "Dan", "Eve", "Finn"], ["cooks", "bakes", "runs", "swims", "rides", "rests"]
    places = ["Rome", "Oslo", "Lima", "Cork", "Kiel", "Bern"]
    pairs = [(f"{name} {verb} in {place}", f"{verb[::-1]} {place[::-1]} {name[::-1]}")
             for name in names for verb in verbs for place in places]
    rng.shuffle(pairs)
    train, test = pairs[:count], pairs[count:count + count // 3]
    with open(os.path.join(folder, "train.jsonl"), "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"question": question, "answer": answer}) + "\n" for question, answer in train)
    with open(os.path.join(folder, "test.csv"), "w", encoding="utf-8") as file:
        file.write("answer,id,question\n")
        file.writelines(f"{answer},{i},{question}\n" for i, (question, answer) in enumerate(test))


def write_npz(path, **arrays):
    """Writes arrays, each a pair of sizes and values: ints become int64, others float32."""
    with zipfile.ZipFile(path, "w") as file:
        for name, (sizes, values) in arrays.items():
            kind, code = ("<i8", "q") if isinstance(values[0], int) else ("<f4", "f")
            header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(sizes)}, }}"
            header += " " * (63 - (10 + len(header)) % 64) + "\n"
            file.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                          struct.pack(f"<{len(values)}{code}", *values))


def make_lines(folder, count, width=16):
    """train.npz and test.npz, images x [N, 1, 8, width] of noise and up to three classes y [N, 3] of each."""
    rng = random.Random(13)
    for part, rows in (("train", count), ("test", count // 2)):
        texts = [[rng.randrange(1, 4) for _ in range(rng.randrange(4))] for _ in range(rows)]
        write_npz(os.path.join(folder, f"{part}.npz"),
                  x=((rows, 1, 8, width), [rng.gauss(0, 1) for _ in range(rows * 8 * width)]),
                  y=((rows, 3), [k for text in texts for k in text + [-100] * (3 - len(text))]))


def make_views(folder, count, size=8):
    """train.npz and test.npz, pairs x [N, 2, size] of the same numbers with different noise."""
    rng = random.Random(12)
    for part, rows in (("train", count), ("test", count // 2)):
        values = []
        for _ in range(rows):
            item = [rng.gauss(0, 1) for _ in range(size)]
            values += [value + rng.gauss(0, 0.1) for _ in range(2) for value in item]
        write_npz(os.path.join(folder, f"{part}.npz"), x=((rows, 2, size), values))


MAKERS = {"idx": make_idx, "folder": make_folder, "tar": make_tar, "links": make_links, "odd": make_odd,
          "text": make_text, "shapes": make_shapes, "table": make_table, "labeled": make_labeled, "tagged": make_tagged,
          "pairs": make_pairs, "views": make_views, "lines": make_lines, "documents": make_documents}


def make(parent, words):
    """`words`: kind, folder, count, then optional name=number settings."""
    kind, name, count = words[:3]
    folder = os.path.join(parent, name)
    os.makedirs(folder, exist_ok=True)
    settings = {key: int(value) for key, value in (word.split("=") for word in words[3:])}
    MAKERS[kind](folder, int(count), **settings)
