"""What the #include lines of a source tree must keep to.

    upward     sim < cost_models < strategies < scenarios < results < tests: a file includes only from its own folder
               and those before it
    cycle      no two rooms of a folder include each other, directly or by way of others. A room is a directory of
               sources; strategies/data and strategies/data/packing are two. A longer way needs an upward include
    loose      sources live in rooms, not directly in one of the first five folders
    mirror     tests/<folder>/<room> tests a room that there is
    owned      heavy headers stay where they are paid for: OWNERS

Each problem is a line "file:line: what". Left out: whether a header is needed, and generated sources.
"""

import re
from pathlib import Path

FOLDERS = ["sim", "cost_models", "strategies", "scenarios", "results", "tests"]
SUFFIXES = {".cpp", ".hpp", ".cu", ".cuh"}
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
# Header prefix -> the rooms (and what lies below them) that may include it.
OWNERS = {
    "arrow/": ["sim/tables"],
    "parquet/": ["sim/tables"],
    "boost/program_options": ["results/cli", "cost_models/calibrate", "cost_models/fit"],
}
# Header prefix -> how many files may include it.
AT_MOST = {"boost/graph/": 1}


class Include:
    """One #include line: `file`:`line` (paths from the root) includes `header`, a `target` of ours or None."""

    def __init__(self, root, file, line, quote, header):
        self.file, self.line, self.header, self.target = file, line, header, None
        if quote == '"':
            beside = file.parent / header
            self.target = beside if (root / beside).exists() else Path(header)

    def __str__(self):
        return f"{self.file}:{self.line}: includes {self.header}"


def sources(root):
    return sorted(path.relative_to(root) for folder in FOLDERS for path in (root / folder).rglob("*")
                  if path.suffix in SUFFIXES)


def includes(root, files):
    for file in files:
        for number, text in enumerate((root / file).read_text().splitlines(), 1):
            if match := INCLUDE.match(text):
                yield Include(root, file, number, *match.groups())


def upward(edges):
    rank = {folder: i for i, folder in enumerate(FOLDERS)}
    for edge in edges:
        own, other = edge.file.parts[0], edge.target.parts[0]
        if rank.get(other, -1) > rank[own]:
            yield f"{edge}: {own} may not know {other}"


def way(neighbours, start, goal):
    """A shortest list of edges from room `start` to room `goal`, or None."""
    came, queue = {start: None}, [start]
    for room in queue:
        for other, edge in sorted(neighbours.get(room, {}).items()):
            if other not in came:
                came[other] = (room, edge)
                queue.append(other)
    if goal not in came:
        return None
    edges = []
    while came[goal]:
        goal, edge = came[goal]
        edges.insert(0, edge)
    return edges


def cycles(edges):
    """One problem per set of rooms on a shortest cycle, naming each of its includes."""
    neighbours, seen = {}, set()
    for edge in edges:
        own, other = edge.file, edge.target
        if own.parent != other.parent and own.parts[0] == other.parts[0]:
            neighbours.setdefault(own.parent, {}).setdefault(other.parent, edge)
    for room in sorted(neighbours):
        for other, edge in sorted(neighbours[room].items()):
            back = way(neighbours, other, room)
            if back is None:
                continue
            rooms = frozenset(e.file.parent for e in [edge, *back])
            if rooms not in seen:
                seen.add(rooms)
                yield (f"{edge}: a cycle of {', '.join(map(str, sorted(rooms)))}, closed by "
                       + " and ".join(str(e) for e in back))


def loose(files):
    for file in files:
        if len(file.parts) == 2 and file.parts[0] != "tests":
            yield f"{file}:1: sources live in subfolders of {file.parts[0]}/"


def mirror(root, files):
    for file in files:
        if file.parts[0] == "tests" and file.parts[1] in FOLDERS:
            room = Path(*file.parts[1:-1])
            if not (root / room).is_dir():
                yield f"{file}:1: there is no {room} to test"


def owned(all_includes):
    users = {}
    for include in all_includes:
        for prefix, rooms in OWNERS.items():
            if include.header.startswith(prefix) and not any(
                    include.file.is_relative_to(room) for room in rooms):
                yield f"{include}: only {', '.join(rooms)} may"
        for prefix in AT_MOST:
            if include.header.startswith(prefix):
                users.setdefault(prefix, {}).setdefault(include.file, include)
    for prefix, files in users.items():
        if len(files) > AT_MOST[prefix]:
            for include in files.values():
                yield f"{include}: {len(files)} files include {prefix}, {AT_MOST[prefix]} may"


def problems(root):
    files = sources(root)
    lines = list(includes(root, files))
    edges = [line for line in lines if line.target]
    return [*upward(edges), *cycles(edges), *loose(files), *mirror(root, files), *owned(lines)]
