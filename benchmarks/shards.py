"""How fast shards are written and read, beside Python's tarfile and webdataset's own writer.

    python -m benchmarks.shards [--samples 10000] [--side 224]

Samples hold a noisy JPEG (noise: the worst case for its size), a caption, two edited texts and a conversation. Each line
is the best of two runs, in samples per second, in the page cache. `write_shard` includes JSON, check sum and flush to disk;
the three writers below it are given ready members, and only write them.
"""

import argparse
import io
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import webdataset
from PIL import Image

from pairwright.datasets.records import Annotation, Origin, Pair, Turn, annotation_id, pair_key
from pairwright.datasets.shards.reading import read_shard, scan_shard
from pairwright.datasets.shards.samples import Sample, encode_members
from pairwright.datasets.shards.ustar import END_MARKER, encode_member
from pairwright.datasets.shards.writing import write_shard

ORIGIN = Origin("benchmark", 1)


def noisy_jpeg(side: int) -> bytes:
    """Return a JPEG of grey noise."""
    out = io.BytesIO()
    Image.effect_noise((side, side), 40).convert("RGB").save(out, "JPEG", quality=85)
    return out.getvalue()


def make_sample(number: int, image: bytes) -> Sample:
    """Return sample ``number`` with three annotations."""
    caption = f"a large red circle to the left of {number} small blue squares"
    key = pair_key("benchmark", str(number), caption)

    def text(kind: str, words: str) -> Annotation:
        id_ = annotation_id(key, kind, ORIGIN, "0", words)
        turns = (Turn("human", "What is left?"), Turn("assistant", words)) if kind == "conversation" else ()
        return Annotation(
            id_, key, kind, ORIGIN, "replace", "attribute", words, caption, turns=turns, scores={"g": 0.5}
        )

    made = (
        text("hard_negative", "a blue circle"),
        text("hard_positive", "a big circle"),
        text("conversation", "A circle."),
    )
    return Sample(Pair(key, caption, image=f"{number}.jpg", source="benchmark"), made, (), image, "jpg")


def rate(work: Callable[[], object], samples: int) -> float:
    """Return samples per second of the better of two runs."""
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return samples / min(seconds)


def write_bare(members: list[tuple[str, bytes]], path: Path) -> None:
    """Write members by `ustar.member`."""
    with path.open("wb", buffering=2**20) as handle:
        for name, data in members:
            handle.writelines(encode_member(name, data))
        handle.write(END_MARKER)


def write_tarfile(members: list[tuple[str, bytes]], path: Path) -> None:
    """Write members by Python's tarfile, as USTAR."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def write_webdataset(samples: list[dict[str, str | bytes]], path: Path) -> None:
    """Write samples by webdataset's writer."""
    with webdataset.TarWriter(str(path)) as writer:
        for sample in samples:
            writer.write(sample)


def load(path: Path) -> int:
    """Return the number of samples that webdataset reads."""
    return sum(1 for _ in webdataset.WebDataset(str(path), shardshuffle=False, empty_check=False))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--side", type=int, default=224, help="of the images, in pixels")
    options = parser.parse_args()
    image = noisy_jpeg(options.side)
    samples = [make_sample(number, image) for number in range(options.samples)]
    members = [(f"{one.pair.key}.{ext}", data) for one in samples for ext, data in encode_members(one)]
    rows: list[dict[str, str | bytes]] = [{"__key__": one.pair.key, **dict(encode_members(one))} for one in samples]
    with tempfile.TemporaryDirectory() as folder:
        ours, plain, theirs = (Path(folder) / f"{name}.tar" for name in ("ours", "plain", "theirs"))
        work: dict[str, Callable[[], object]] = {
            "write_shard": lambda: write_shard(samples, ours),
            "  ready members: pairwright": lambda: write_bare(members, plain),
            "  ready members: tarfile": lambda: write_tarfile(members, plain),
            "  ready members: webdataset": lambda: write_webdataset(rows, theirs),
            "webdataset reads our shard": lambda: load(ours),
            "webdataset reads its own": lambda: load(theirs),
            "read_shard": lambda: sum(1 for _ in read_shard(ours)),
            "scan_shard (count, check sum)": lambda: scan_shard(ours),
        }
        print(f"{options.samples:,} samples, images of {len(image):,} bytes")
        for name, one in work.items():
            print(f"{name:32} {rate(one, options.samples):10,.0f} samples/s")
        print(f"bytes of a shard: ours {ours.stat().st_size:,}, webdataset's {theirs.stat().st_size:,}")


if __name__ == "__main__":
    main()
