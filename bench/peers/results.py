# SPDX-License-Identifier: Apache-2.0
"""The result file: schema 1, one row a line, written whole or not at all. Standard library only."""

import json
import os

# How numbers are written; integers and text as they are.
_FORMATS = {
    "median_us": "%.2f", "p25_us": "%.2f", "p75_us": "%.2f", "floor_us": "%.2f",
    "max_abs_error": "%.3e", "relative_error": "%.6e", "lse_error": "%.3e", "gbps": "%.1f",
    "tokens_per_s": "%.1f", "accepted_length": "%.2f",
}
# Fields that no row of an op may lack.
_REQUIRED = {
    "verify": ("implementation", "mask", "B", "H", "Q", "N", "layout", "row_stride_bytes",
               "median_us", "p25_us", "p75_us", "samples", "max_abs_error", "relative_error",
               "set"),
    "served": ("implementation", "layers", "B", "H", "Q", "N", "mask", "layout", "median_us",
               "p25_us", "p75_us", "samples", "accepted_length", "tokens_per_s",
               "relative_error"),
    "accuracy": ("implementation", "B", "H", "Q", "N", "mask", "seed", "relative_error"),
}


def row_text(row):
    """One row as a line of JSON. Raises ValueError where a field is missing or not finite."""
    missing = [name for name in _REQUIRED[row["op"]] if name not in row]
    if missing:
        raise ValueError(f"a row of {row['op']} lacks {', '.join(missing)}")
    parts = []
    for name, value in row.items():
        if isinstance(value, float):
            if value != value or value in (float("inf"), float("-inf")):
                raise ValueError(f"{name} is not finite")
            parts.append(f'"{name}": {_FORMATS.get(name, "%.6g") % value}')
        else:
            parts.append(f'"{name}": {json.dumps(value)}')
    return "{" + ", ".join(parts) + "}"


def file_text(environment, ceilings, rows):
    """The whole file. `ceilings` None leaves them out."""
    text = '{"schema": 1,\n  "environment": ' + json.dumps(environment)
    if ceilings is not None:
        text += ',\n  "ceilings": ' + json.dumps(ceilings)
    text += ',\n  "rows": [\n' + ",\n".join("    " + row_text(row) for row in rows)
    return text + "\n  ]\n}\n"


def write_file(path, environment, ceilings, rows):
    """Writes to a temporary name beside `path` and renames, so that no half-written file stays."""
    text = file_text(environment, ceilings, rows)
    json.loads(text)
    temporary = path + ".part"
    with open(temporary, "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
