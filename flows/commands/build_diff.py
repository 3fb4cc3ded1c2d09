"""Differences of two finished builds: settings, counts, pairs, texts, shards.

The manifest of a build has the checksum of every file. A file with the same checksum in both builds is only read for its
counts; of other files the key and a hash of each column of each row are held, about 120 bytes per pair and 60 per text.

Pairs are matched by key. The key covers the caption, so rows with a corrected caption are matched by source and source id
(or image) and count as changed. Texts are matched by id, which covers the generator, the position in its output and the
text; such a text can change in its other fields only: edits, scores, prompt.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pairwright.datasets.build_manifest import read_manifest
from pairwright.datasets.errors import StorageError
from pairwright.datasets.record_tables import ANNOTATIONS, PAIRS, Table
from pairwright.datasets.version_switch import MANIFEST_FILE
from pairwright.flows.state.layout import fetched_images_path, retrieved_keys_path

_ROWS = pl.Schema(dict.fromkeys(("what", "change", "id", "a", "b", "fields"), pl.String))
_EDITED = ("hard_negative", "hard_positive")


@dataclass(frozen=True)
class BuildSide:
    """A finished build: its folder and its manifest."""

    folder: Path
    manifest: Mapping[str, Any]

    @classmethod
    def open(cls, folder: Path) -> "BuildSide":
        """Read the manifest of ``folder``.

        Raises:
            StorageError: when it is not a finished build.
        """
        manifest = read_manifest(folder)
        if not (folder / MANIFEST_FILE).is_file():
            raise StorageError(
                f"{folder}: is not a build directory ({MANIFEST_FILE} is missing). "
                "Give two build directories, or two files of candidate rows."
            )
        required = ("files", "stages", "config", "shards", "environment")
        missing = [name for name in required if not isinstance(manifest.get(name), Mapping)]
        if missing:
            raise StorageError(
                f"{folder / MANIFEST_FILE}: `{missing[0]}` is missing. Build again with this version of pairwright."
            )
        return cls(folder, manifest)

    def files(self, prefix: str, suffix: str = ".parquet") -> dict[str, str]:
        """Return the checksums of the files below ``prefix`` by path."""
        files = self.manifest["files"]
        return {
            name: entry["sha256"] for name, entry in files.items() if name.startswith(prefix) and name.endswith(suffix)
        }


def compare(a: Path, b: Path) -> dict[str, Any]:
    """Return the differences of two finished builds as JSON.

    Returns:
        ``a`` and ``b`` (folders); ``same`` (whether pairs, texts and shards are the same); ``config`` and
        ``environment`` (lists of name, a, b); ``stages`` (unit, and candidates, kept and rejected of a and b, by name);
        ``pairs`` (a, b, added, removed, changed, and ``fields``: number of changes by column); ``chosen`` (a, b, added,
        removed: selected pairs); ``annotations`` (the same as ``pairs``, by type); ``shards`` (a, b, same,
        changed, added, removed, and samples of both).

    Raises:
        StorageError: when a folder is not a finished build, or one of its files is missing or broken.
    """
    one, other = BuildSide.open(a), BuildSide.open(b)
    pairs = _pair_changes(one, other).counts()
    texts = _text_changes(one, other).counts_by_type()
    selected, shards = _selection_changes(one, other), _shards(one, other)
    changes = [
        counts.get(name) for counts in (pairs, selected, *texts.values()) for name in ("added", "removed", "changed")
    ]
    return {
        "a": str(a),
        "b": str(b),
        "same": not any(changes) and shards["same"] == shards["a"] == shards["b"],
        "config": _settings(one.manifest["config"], other.manifest["config"]),
        "environment": _settings(one.manifest["environment"], other.manifest["environment"]),
        "stages": _stages(one.manifest["stages"], other.manifest["stages"]),
        "pairs": pairs,
        "chosen": selected,
        "annotations": texts,
        "shards": shards,
    }


def changed_rows(a: Path, b: Path) -> pl.DataFrame:
    """Return each pair and each text that differs, sorted by type.

    Returns:
        A frame of ``what`` (pair, or the type of text), ``change`` (added, removed, changed), ``id`` (of b, else of
        a), ``a`` and ``b``: the caption or text in each build, empty where it is missing, and ``fields``: the columns
        that changed.
    """
    one, other = BuildSide.open(a), BuildSide.open(b)
    rows = [*_pair_changes(one, other).rows(), *_text_changes(one, other).rows()]
    return pl.DataFrame(rows, schema=_ROWS, orient="row")


@dataclass(frozen=True)
class _Kind:
    """Records to compare.

    Attributes:
        table: of the records.
        prefix: of their files.
        id_column: column that identifies a row.
        text_column: column of the caption or text.
        group: type to count by.
        match_key: second identifier, by which rows with different ids are matched; empty for none.
    """

    table: Table[Any]
    prefix: str
    id_column: str
    text_column: str
    group: pl.Expr
    match_key: pl.Expr


@dataclass(frozen=True)
class _Changes:
    """Differences of the rows of one table.

    Attributes:
        kind: of the rows.
        sides: the two builds.
        files: of each build, those that are missing or different in the other.
        totals: number of rows of each build, by group.
        added: names and groups of rows in b only.
        removed: names and groups of rows in a only.
        changed: rows in both: name in a, name in b, group, and the columns that differ.
    """

    kind: _Kind
    sides: tuple[BuildSide, BuildSide]
    files: tuple[list[str], list[str]]
    totals: tuple[dict[str, int], dict[str, int]]
    added: pl.DataFrame
    removed: pl.DataFrame
    changed: pl.DataFrame

    def counts(self) -> dict[str, Any]:
        return {
            "a": sum(self.totals[0].values()),
            "b": sum(self.totals[1].values()),
            "added": self.added.height,
            "removed": self.removed.height,
            "changed": self.changed.height,
            "fields": _count_fields(self.changed),
        }

    def counts_by_type(self) -> dict[str, dict[str, Any]]:
        changes = {name: _by_group(getattr(self, name)) for name in ("added", "removed", "changed")}
        return {
            group: {
                "a": self.totals[0].get(group, 0),
                "b": self.totals[1].get(group, 0),
                **{name: counts.get(group, 0) for name, counts in changes.items()},
                "fields": _count_fields(self.changed.filter(pl.col("group") == group)),
            }
            for group in sorted({*self.totals[0], *self.totals[1]})
        }

    def rows(self) -> list[tuple[str, ...]]:
        before = self._texts(0, [*self.removed["name"], *self.changed["name"]])
        after = self._texts(1, [*self.added["name"], *self.changed["name_b"]])
        rows = [(group, "removed", name, before[name], "", "") for name, group in _named(self.removed)]
        rows += [(group, "added", name, "", after[name], "") for name, group in _named(self.added)]
        changed = self.changed.select("group", "name", "name_b", pl.col("fields").list.join(", ")).iter_rows()
        rows += [(group, "changed", b, before[a], after[b], fields) for group, a, b, fields in changed]
        return sorted(rows)

    def _texts(self, side: int, names: Sequence[str]) -> dict[str, str]:
        wanted = pl.DataFrame({"wanted": names}, schema={"wanted": pl.String})
        found: dict[str, str] = {}
        for file in self.files[side]:
            frame = self.kind.table.read_frame(self.sides[side].folder / file)
            found.update(
                frame.join(wanted, left_on=self.kind.id_column, right_on="wanted", how="semi")
                .select(self.kind.id_column, self.kind.text_column)
                .iter_rows()
            )
        return found


def _named(frame: pl.DataFrame) -> Iterator[tuple[str, str]]:
    return frame.select("name", "group").iter_rows()


def _count_fields(changed: pl.DataFrame) -> dict[str, int]:
    fields = changed.select(pl.col("fields").explode()).to_series().value_counts()
    return {name: count for name, count in sorted(fields.iter_rows()) if name}


def _by_group(frame: pl.DataFrame) -> dict[str, int]:
    return dict(frame.group_by("group").len().iter_rows())


def _compare_rows(kind: _Kind, sides: tuple[BuildSide, BuildSide]) -> _Changes:
    """Compare the rows of one kind in two builds."""
    known = sides[0].files(kind.prefix), sides[1].files(kind.prefix)
    files = tuple(sorted(file for file in one if one[file] != other.get(file)) for one, other in (known, known[::-1]))
    hashed = [_row_hashes(kind, side.folder, mine) for side, mine in zip(sides, files, strict=True)]
    equal = [file for file in known[0] if known[0][file] == known[1].get(file)]
    both = _group_counts(kind, sides[0].folder, equal)
    totals = tuple({**both, **{g: n + both.get(g, 0) for g, n in _by_group(frame).items()}} for frame in hashed)
    a, b = hashed
    removed, added = a.join(b, on="name", how="anti"), b.join(a, on="name", how="anti")
    fields = [column for column in kind.table.schema if column != kind.id_column]
    rematched = removed.filter(pl.col("match_key") != "").sort("name").with_columns(_nth_of_match_key())
    rematched = rematched.join(
        added.sort("name").with_columns(_nth_of_match_key()), on=("match_key", "nth"), suffix="_b"
    )
    stayed = a.join(b.with_columns(pl.col("name").alias("name_b")), on="name", suffix="_b")
    changed = pl.concat([_with_fields(each, fields) for each in (stayed, rematched)])
    return _Changes(
        kind=kind,
        sides=sides,
        files=(files[0], files[1]),
        totals=(totals[0], totals[1]),
        added=added.join(rematched.select(name="name_b"), on="name", how="anti").select("name", "group"),
        removed=removed.join(rematched.select("name"), on="name", how="anti").select("name", "group"),
        changed=changed,
    )


def _nth_of_match_key() -> pl.Expr:
    return pl.int_range(pl.len()).over("match_key").alias("nth")


def _with_fields(joined: pl.DataFrame, fields: Sequence[str]) -> pl.DataFrame:
    """Return name, name_b, group and the columns that differ of the rows with differences."""
    differing = [
        pl.when(pl.col(f"={field}") != pl.col(f"={field}_b")).then(pl.lit(field)).otherwise(None) for field in fields
    ]
    compared = joined.select("name", "name_b", "group", fields=pl.concat_list(differing).list.drop_nulls())
    return compared.filter(pl.col("fields").list.len() > 0)


def _row_hashes(kind: _Kind, folder: Path, files: Sequence[str]) -> pl.DataFrame:
    """Return name, group, second identifier and a hash of each other column of the rows of files."""
    columns = [pl.col(column).hash().alias(f"={column}") for column in kind.table.schema if column != kind.id_column]
    selected = [
        pl.col(kind.id_column).alias("name"),
        kind.group.alias("group"),
        kind.match_key.alias("match_key"),
        *columns,
    ]
    frames = [kind.table.frame([]), *(kind.table.read_frame(folder / file) for file in files)]
    return pl.concat([frame.select(selected) for frame in frames])


def _group_counts(kind: _Kind, folder: Path, files: Sequence[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for file in files:
        for group, count in _by_group(_read(folder / file, kind.id_column, kind.group.alias("group"))).items():
            counts[group] = counts.get(group, 0) + count
    return counts


def _read(path: Path, *columns: str | pl.Expr) -> pl.DataFrame:
    try:
        return pl.scan_parquet(path).select(*columns).collect()
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = str(error).partition("\n")[0]
        raise StorageError(f"{path}: cannot be read ({reason}). Run `pairwright verify` to check all files.") from None


def _pair_changes(one: BuildSide, other: BuildSide) -> _Changes:
    source_id = pl.when(pl.col("source_id") == "").then(pl.col("image")).otherwise(pl.col("source_id"))
    matched = pl.when(source_id == "").then(pl.lit("")).otherwise(pl.col("source") + "\n" + source_id)
    return _compare_rows(_Kind(PAIRS, "pairs/", "key", "caption", pl.lit("pair"), matched), (one, other))


def _text_changes(one: BuildSide, other: BuildSide) -> _Changes:
    edited = pl.col("kind").is_in(_EDITED)
    named = pl.concat_str("kind", pl.lit(" "), "form", pl.lit("-"), "target").str.strip_chars_end(" -")
    group = pl.when(edited).then(named.str.replace("_", " ")).otherwise(pl.col("kind"))
    return _compare_rows(_Kind(ANNOTATIONS, "annotations/", "id", "text", group, pl.lit("")), (one, other))


def _selection_changes(one: BuildSide, other: BuildSide) -> dict[str, int]:
    """Compare the keys of the selected pairs: those retrieved, and of these the ones with a fetched image."""
    a, b = _selected_keys(one), _selected_keys(other)
    return {
        "a": a.height,
        "b": b.height,
        "added": b.join(a, on="key", how="anti").height,
        "removed": a.join(b, on="key", how="anti").height,
    }


def _selected_keys(side: BuildSide) -> pl.DataFrame:
    tables = [
        path.relative_to(side.folder).as_posix()
        for path in (fetched_images_path(side.folder), retrieved_keys_path(side.folder))
    ]
    narrowed = [name for name in tables if name in side.manifest["files"]]
    files = narrowed[:1] or sorted(side.files("pairs/"))
    return pl.concat([_read(side.folder / file, "key") for file in files])


def _shards(one: BuildSide, other: BuildSide) -> dict[str, Any]:
    a, b = one.files("shards/", ".tar"), other.files("shards/", ".tar")
    common = a.keys() & b.keys()
    same = sum(a[name] == b[name] for name in common)
    return {
        "a": len(a),
        "b": len(b),
        "same": same,
        "changed": len(common) - same,
        "added": len(b.keys() - a.keys()),
        "removed": len(a.keys() - b.keys()),
        "samples": {"a": one.manifest["stages"]["sizes"]["kept"], "b": other.manifest["stages"]["sizes"]["kept"]},
    }


def _stages(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    compared: dict[str, Any] = {}
    for name in [*a, *(name for name in b if name not in a)]:
        sides = {side: stages[name] for side, stages in (("a", a), ("b", b)) if name in stages}
        compared[name] = {
            "unit": next(iter(sides.values()))["unit"],
            **{side: {key: stage[key] for key in ("candidates", "kept", "rejected")} for side, stage in sides.items()},
        }
    return compared


def _settings(a: Any, b: Any) -> list[dict[str, Any]]:
    """Return the values of two nested mappings that differ, by their dotted names; None for a missing one."""
    one, other = dict(_leaves(a)), dict(_leaves(b))
    names = [*one, *(name for name in other if name not in one)]
    return [
        {"name": name, "a": one.get(name), "b": other.get(name)} for name in names if one.get(name) != other.get(name)
    ]


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}.{key}" if name else str(key))
    else:
        yield name, value
