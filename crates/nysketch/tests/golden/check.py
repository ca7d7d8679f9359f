"""An independent implementation of FORMAT.md: recomputes the golden sketches with numpy.

Does not use nysketch. Reads each plan with the safetensors package, follows the arithmetic of
FORMAT.md on the golden rows, and compares every sum with the sketch file, integer by integer.

Logarithms, sines and cosines are those of Python's math, which may differ in the last of 53 bits; the
sums have a lower resolution, and those of the golden rows are equal.
"""

import calendar
import datetime
import hashlib
import json
import math
import pathlib
import zlib

import numpy as np
from safetensors import safe_open

HERE = pathlib.Path(__file__).parent
F32 = np.float32
EXP2 = np.array([0x3F317214, 0x3E75FCDF, 0x3D635BAA, 0x3C1E7545, 0x3AADDD0A], np.uint32).view(F32)
ROUND = F32(12582912.0)


def plain_rows():
    """Returns the columns by name, and the weight of each row for plans with weights."""
    i, j = np.meshgrid(np.arange(300), np.arange(3), indexing="ij")
    values = ((i * i * (j + 3) + 7 * i + 11 * j) % 101) / 8.0 + j * 100.0
    return dict(zip(("height", "width", "βάρος"), values.T))


def mixed_rows():
    def city(i):
        if i % 13 == 4:
            return None
        return "Ωmega" if i % 13 == 5 else {0: "Oslo", 1: "Oslo", 2: 'New "York"'}.get(i * i % 7, "")

    i = np.arange(300)
    return {
        "height": ((3 * i * i + 7 * i) % 101) / 8.0,
        "amount": (((5 * i * i + 11 * i) % 97) ** 3 - 4000) / 4.0,
        "when": (2469135 * i - 80000000) / 2.0,
        "city": [city(k) for k in range(300)],
        "kind": ["new" if k % 31 == 8 else "ab"[k // 2 % 2] for k in range(300)],
    }


def holed_rows():
    def value(i, j):
        if j and (i % 37 == 3 or (3 * i + 5 * j * i + j) % 8 == 0):
            return math.nan
        if j == 3:
            return 2 * i % 7 - 3.0 + i % 4 / 4.0
        if j == 4:
            return (i * i + 6) % 7 - 3.0
        return (i * i * (j + 3) + 7 * i + 11 * j) % 101 / 8.0 + j * 100.0

    columns = {name: np.array([value(i, j) for i in range(300)]) for j, name in enumerate(("x", "y", "z", "v[0]", "v[1]"))}
    columns["group"] = [None if i % 6 == 0 or i % 37 == 3 else "pqr"[i % 5 // 2] for i in range(300)]
    return columns


ROWS = {
    "v1/nystrom": plain_rows,
    "v1/weighted": plain_rows,
    "v1/fourier": plain_rows,
    "v2/adapted": plain_rows,
    "v2/laplace": plain_rows,
    "v2/witnesses": plain_rows,
    "v2/counted": plain_rows,
    "v2/folded": plain_rows,
    "v2/keyed": plain_rows,
    "v3/mixed": mixed_rows,
    "v3/holes": holed_rows,
    "v4/private": plain_rows,
    "v4/people": plain_rows,
}


# The text that assigns each row to a fold, if that is a column.
KEYS = {"user": [None if i % 11 == 7 else f"user {i * i % 23}" for i in range(300)]}


def month(seconds):
    """Returns the elapsed share of the year, with twelve equal months."""
    day = datetime.date(1970, 1, 1) + datetime.timedelta(days=seconds // 86400.0)
    into = (day.day - 1) + (seconds % 86400.0) / 86400.0
    return (day.month - 1 + into / calendar.monthrange(day.year, day.month)[1]) / 12.0


TURNS = {
    "hour": lambda x: x % 86400.0 / 86400.0,
    "weekday": lambda x: (x + 259200.0) % 604800.0 / 604800.0,
    "month": month,
}


def step(name, x):
    """Computes the value of a column of the plan from a value of the table."""
    if name in ("none", "time") or math.isnan(x):
        return x
    if name == "log":
        return math.copysign(math.log1p(abs(x)), x)
    turn, _, function = name.partition("_")
    return {"sin": math.sin, "cos": math.cos}[function](2.0 * math.pi * TURNS[turn](x))


def see(columns, meta):
    """Returns the numbers and levels of the rows after the preprocessing of the plan."""
    steps = meta.get("steps", [{"input": name, "step": "none"} for name in meta["columns"]])
    values = np.array([[step(s["step"], x) for x in columns[s["input"]]] for s in steps]).T
    for start, end in meta.get("units", []):
        squares = np.zeros(len(values))
        for k in range(start, end):
            squares = squares + values[:, k] * values[:, k]
        length = np.sqrt(squares)[:, None]
        lost = (length == 0) | np.isinf(length)
        values[:, start:end] = np.where(lost, np.inf, values[:, start:end] / np.where(lost, 1.0, length))
    codes = np.zeros((len(values), len(meta.get("categories", []))), int)
    for c, category in enumerate(meta.get("categories", [])):
        levels = category["levels"]
        code = {text: i for i, text in enumerate(levels)} | {None: len(levels) + 1}
        codes[:, c] = [code.get(text, len(levels)) for text in columns[category["name"]]]
    return values, codes


def people_rows(plan, meta, values):
    """Selects the rows that count if the plan protects people: those with the smallest hashes."""
    people = meta.get("private", {}).get("people")
    if people is None:
        return np.ones(len(values), bool)
    rows = {}
    for i, key in enumerate(KEYS[people["column"]]):
        if key is not None:
            number = hashlib.sha256((values[i] + 0.0).astype("<f8").tobytes()).digest()[:16]
            rows.setdefault(key, []).append((number, i))
    counts = np.zeros(len(values), bool)
    for found in rows.values():
        counts[[i for _, i in sorted(found)[: people["rows"]]]] = True
    return counts


def anchors(plan):
    return np.rint(plan["landmarks"].astype(np.float64) * 2.0 ** -float(plan["exponent"][0]))


def within_radius(q, anchor, radius):
    """Clips integer coordinates to the radius around the anchors of their cells."""
    s = np.zeros(len(q))
    for k in range(q.shape[1]):
        t = q[:, k] - anchor[:, k]
        s = s + t * t
    far = s > float(radius) * float(radius)
    factor = float(radius) / np.sqrt(np.where(far, s, 1.0))
    return np.where(far[:, None], anchor + np.trunc((q - anchor) * factor[:, None]), q)


def fma(a, b, c):
    """Fused multiply-add in f32. The product of two f32 is exact in f64; the sum is rounded to odd
    in f64 so that narrowing to f32 rounds only once."""
    product = np.float64(a) * np.float64(b)
    c = np.broadcast_to(np.float64(c), product.shape)
    total = product + c
    virtual = total - product
    error = (product - (total - virtual)) + (c - virtual)
    bits = total.view(np.int64)
    inexact_even = (error != 0) & (bits & 1 == 0)
    away = (error > 0) == (total > 0)
    bits = np.where(inexact_even, np.where(away, bits + 1, bits - 1), bits)
    return bits.view(np.float64).astype(F32)


def exp2_product(a, b):
    rounded = fma(a, b, ROUND)
    fraction = fma(a, b, -(rounded - ROUND))
    p = np.broadcast_to(EXP2[4], fraction.shape).astype(F32)
    for k in (3, 2, 1, 0):
        p = fma(p, fraction, EXP2[k])
    p = fma(p, fraction, F32(1.0))
    return (p.view(np.uint32) + (rounded.view(np.uint32) << np.uint32(23))).view(F32)


# Distance of one coordinate, rate of a bandwidth, and the factor of sigma^2 that squares it.
KERNELS = {
    "gaussian": (lambda t, s: fma(t, t, s), lambda sigma2: -np.log2(np.e) / (2.0 * sigma2), 2.0),
    "laplace": (lambda t, s: s + np.abs(t), lambda sigma2: -np.log2(np.e) / np.sqrt(sigma2), 4.0),
}


def kernel(distance, rate):
    limit = F32(-30.0 / rate)
    return exp2_product(np.minimum(distance, limit), F32(rate))


def units(kappa):
    return (kappa + F32(1.0)).view(np.uint32).astype(np.int64) - 0x3F800000


def rungs(distance, bandwidths, name):
    """Returns the kernel values at every bandwidth, in units of 2^-23."""
    _, rate, square = KERNELS[name]
    kappa, squarings = None, 0
    for i, sigma2 in enumerate(bandwidths):
        times = {square: 1, square**2: 2}.get(bandwidths[i - 1] / sigma2, 0) if i else 0
        if times == 0 or squarings + times > 4:
            kappa, squarings = kernel(distance, rate(sigma2)), 0
        else:
            for _ in range(times):
                kappa = kappa * kappa
            kappa = np.maximum(kappa, F32(2.0**-30))
            squarings += times
        yield units(kappa)


def cos_sin(phase, factor):
    angle = np.clip(phase * factor, F32(-4194304.0), F32(4194304.0))
    rounded = angle + ROUND
    r = angle - (rounded - ROUND)
    r2 = r * r
    sin = [F32(x) for x in (1.5707963, -0.64596294, 0.0796759, -0.00459229)]
    cos = [F32(x) for x in (-1.2337005, 0.25366924, -0.020860288, 0.00090402164)]
    s = fma(fma(fma(np.full_like(r2, sin[3]), r2, sin[2]), r2, sin[1]), r2, sin[0]) * r
    c = fma(fma(fma(fma(np.full_like(r2, cos[3]), r2, cos[2]), r2, cos[1]), r2, cos[0]), r2, F32(1.0))
    quarter = rounded.view(np.uint32) & 3
    c, s = np.where(quarter & 1, s, c), np.where(quarter & 1, c, s)
    c = np.where((quarter + 1) & 2, -c, c)
    s = np.where(quarter & 2, -s, s)
    return tuple(np.round(x * F32(1 << 23)).astype(np.int64) for x in (c, s))


def integers(tensor):
    low, high = tensor[..., 0].astype(object), tensor[..., 1].astype(np.int64).astype(object)
    return high * 2**64 + low


def mix(x):
    mask = 2**64 - 1
    z = (x + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def hashed(data):
    state = 0
    for start in range(0, len(data), 8):
        state = mix(state ^ int.from_bytes(data[start : start + 8].ljust(8, b"\0"), "little"))
    return mix(state ^ len(data))


def content_hash(z, levels):
    canonical = np.where(np.isnan(z), F32(np.nan), z + F32(0.0)).astype("<f4")
    return hashed(canonical.tobytes() + np.asarray(levels, "<u4").tobytes())


def deal(plan, meta, columns):
    """Returns the fold and the content hash of each row and the number of folds; None without folds."""
    rule = meta.get("sections", {}).get("folds")
    if rule is None:
        return None
    count, by = rule.split(" ", 1)
    values, codes = see(columns, meta)
    y = ((values - plan["centre"]) * (1.0 / plan["scale"])).astype(F32)
    content = [content_hash(z, levels) for z, levels in zip(y, codes)]
    keys = [None] * len(content) if by == "content" else KEYS[by.removeprefix("key ")]
    hashes = [c if key is None else hashed(key.encode()) for c, key in zip(content, keys)]
    return np.array([h * int(count) >> 64 for h in hashes]), content, int(count)


def check_folds(name, plan, meta, columns, sketch, total):
    """Checks the sums of every fold; the last one is the total minus the others."""
    folds, content, count = deal(plan, meta, columns)
    for key, whole in total.items():
        stored = integers(sketch[f"folds.{key}"])
        assert stored.shape == (count - 1, *whole.shape), f"{name}: folds.{key}"
        found = [*stored, whole - stored.sum(0)]
        for fold in range(count):
            want = compute(plan, meta, columns, folds == fold)[key]
            assert (found[fold] == want).all(), f"{name}: {key} of fold {fold}"
    extra = {f"folds.{key}" for key in total}
    if "folds.witnesses" in sketch:
        rows, seen = plan["witnesses.rows"], np.zeros((len(plan["witnesses.rows"]), 3), np.uint64)
        levels = plan.get("witnesses.levels", np.zeros((len(rows), 0), np.int32))
        for i, (z, own) in enumerate(zip(rows, levels)):
            equal = folds[np.array(content, object) == content_hash(z, own)].astype(np.uint64)
            seen[i] = [len(equal), equal.sum(), (equal**2).sum()]
        assert (sketch["folds.witnesses"] == seen).all(), f"{name}: folds of witnesses"
        extra.add("folds.witnesses")
    return extra


def compute(plan, meta, columns, kept=slice(None)):
    """Returns every sum that the plan collects, over the rows in `kept`, as Python integers."""
    values, codes = (rows[kept] for rows in see(columns, meta))
    if "private" in meta:
        finite = np.isfinite(values)
        values = np.where(finite, np.clip(values, plan["low"], plan["high"]), values)
        counts = people_rows(plan, meta, values)
        values, codes = values[counts], codes[counts]
    categories, least = meta.get("categories", []), meta.get("least_present")
    levels = [len(category["levels"]) + 2 for category in categories]
    d = values.shape[1]
    w = np.ones(len(values), dtype=object)
    if meta["weights"]:
        weights = ((np.arange(300) % 4) * 0.5)[kept]
        w = np.array([int(x) for x in np.rint(weights / plan["weight_unit"][0])], dtype=object)
    y = (values - plan["centre"]) * (1.0 / plan["scale"])
    q = np.rint(y * 2.0 ** -plan["exponent"].astype(np.float64))
    absent = np.isnan(values) if least else np.zeros(values.shape, bool)
    valid = (absent | (np.abs(q) <= 2.0**44)).all(1)
    if least:
        known = [codes[:, c] != n - 1 for c, n in enumerate(levels)]
        valid &= (~absent).sum(1) + np.sum(known, axis=0) >= least
    sums = {"skipped": [int((~valid).sum())]}
    w, codes, absent = w[valid], codes[valid], absent[valid]
    z = np.where(absent, 0.0, y[valid]).astype(F32)
    q = np.where(absent, 0.0, q[valid]).astype(np.int64).astype(object)
    sums["rows"] = [w.sum()]
    # Sums over complete rows.
    complete = ~absent.any(1)
    if least:
        sums["complete"] = [w[complete].sum()]
    total = lambda x: (w[complete, None] * x[complete].astype(object)).sum(0)
    bandwidths = plan["bandwidths"]
    if meta["features"] == "nystrom":
        points = plan["landmarks"]
        name = meta.get("kernel", "gaussian")
        term, rate, square = KERNELS[name]
        distance = np.zeros((len(z), len(points)), F32)
        for k in range(d):
            further = term(z[:, k, None] - points[None, :, k], distance)
            distance = np.where(absent[:, k, None], distance, further)
        for c in range(len(categories)):
            differs = codes[:, c, None] != plan["landmark_levels"][None, :, c]
            distance = distance + np.where(differs, F32(plan["category_weight"][c]), F32(0.0))
        nearest = distance.argmin(1)
        nearness = distance[np.arange(len(z)), nearest, None]
        if "kernel" in meta["collect"]:
            sums["features"] = [total(u) for u in rungs(distance, bandwidths, name)]
            sums["coverage"] = [total(units(kernel(nearness, rate(s / square))))[0] for s in bandwidths]
        if "cells" in meta["collect"]:
            cell = [nearest == j for j in range(len(points))]
            if "private" in meta:
                near = within_radius(q.astype(np.float64), anchors(plan)[nearest], meta["private"]["radius"])
                whole, q = q, near.astype(np.int64).astype(object)
            in_cells = lambda x: [(w[c, None] * x[c]).sum(0) if c.any() else [0] * x.shape[1] for c in cell]
            sums["cell_rows"] = [w[c].sum() for c in cell]
            sums["cell_sum"] = in_cells(q)
            sums["cell_square"] = in_cells(q**2)
            if "private" in meta:
                q = whole
            if least:
                sums["cell_absent"] = in_cells(absent.astype(object))
            if categories:
                has = [codes[:, c, None] == np.arange(n) for c, n in enumerate(levels)]
                sums["cell_levels"] = in_cells(np.hstack(has).astype(int).astype(object))
    else:
        phase = np.zeros((len(z), len(plan["frequencies"])), F32)
        for k in range(d):
            phase = fma(plan["frequencies"][None, :, k], z[:, k, None], phase)
        factors = [F32(2.0 / np.pi / np.sqrt(s)) for s in bandwidths]
        sums["features"] = [np.concatenate([total(x) for x in cos_sin(phase, f)]) for f in factors]
    if "moments" in meta["collect"]:
        sums["sum"] = total(q)
        sums["outer"] = [total(q[:, i : i + 1] * q[:, j : j + 1])[0] for i in range(d) for j in range(i + 1)]
    if people := meta.get("private", {}).get("people"):
        sums["person_rows"] = [people["rows"]]
    return {k: np.array(v, dtype=object) for k, v in sums.items()}


def read(path):
    data = path.read_bytes()
    assert zlib.crc32(data[:-4]) == int.from_bytes(data[-4:], "little"), "checksum"
    with safe_open(path, "np") as f:
        text = f.metadata()["nysketch"]
        meta = json.loads(text)
        canonical = json.dumps(meta, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert canonical == text, "canonical JSON"
        return meta, {k: f.get_tensor(k) for k in f.keys()}


def without_sections(path, sections):
    """Returns the bytes of a plan's file without the tensors of its sections, for the fingerprint."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header, body, kept = json.loads(data[8:start]), data[start:], b""
    for name in [n for n in header if n != "__metadata__"]:
        if name.partition(".")[0] in sections:
            del header[name]
            continue
        first, last = header[name]["data_offsets"]
        header[name]["data_offsets"] = [len(kept), len(kept) + last - first]
        kept += body[first:last]
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    file = len(text).to_bytes(8, "little") + text + kept[:-4]
    return file + zlib.crc32(file).to_bytes(4, "little")


def digest(plan, section):
    """Returns the SHA-256 of the tensors of a section, each after a line with name, type and shape."""
    hashed = hashlib.sha256()
    for name in sorted(n for n in plan if n.partition(".")[0] == section):
        shape = " ".join(str(n) for n in plan[name].shape)
        kind = {"float32": "F32", "int32": "I32"}[plan[name].dtype.name]
        hashed.update(f"{name} {kind} {shape}\n".encode() + plan[name].tobytes())
    return hashed.hexdigest()


def certificate(matrix):
    """The least of thirty bounds of the largest eigenvalue: max_i (Kv)_i / v_i, rounded up, along a power iteration."""
    v, best = [1] * len(matrix), None
    for _ in range(30):
        w = [sum(k * x for k, x in zip(row, v)) for row in matrix]
        bound = max(-(-a // b) for a, b in zip(w, v))
        best = bound if best is None else min(best, bound)
        shift = max(max(w).bit_length() - 27, 0)
        v = [(x >> shift) + 1 for x in w]
    return best


def sensitivities(plan, meta):
    """Returns the squared sensitivity of each mechanism to one row."""
    (m, d), radius = plan["landmarks"].shape, meta["private"]["radius"]
    unit, scale = 2.0 ** -float(plan["exponent"][0]), 1.0 / plan["scale"]
    ends = [np.abs(np.rint((plan[end] - plan["centre"]) * scale * unit)) for end in ("low", "high")]
    reach = [int(r) for r in np.maximum(*ends)]
    total = sum(r**2 for r in reach)
    cell = radius**2 + (radius**2 >> 31)
    points = plan["landmarks"]
    distance = np.zeros((m, m), F32)
    for k in range(d):
        distance = fma(points[:, None, k] - points[None, :, k], points[:, None, k] - points[None, :, k], distance)
    error, kernels = 64 + -(-d // 4), 0
    for matrix in rungs(distance, plan["bandwidths"], meta["kernel"]):
        above = [[int(k) + min(error, 2 + (int(k) * error >> 17)) for k in row] for row in matrix]
        a, b = certificate(above) << 23, m * error**2
        kernels += a + b + 2 * (math.isqrt(a * b) + 1)
    products = (total**2 + sum(r**4 for r in reach)) // 2
    moments = {"totals": total, "products": products}
    return {"counts": 1, "sums": cell, "squares": cell**2, "kernel": kernels, "rows": 1} | moments


def check_release():
    """Checks that the noise of a release agrees with its ρ, and its sums with those of the sketch."""
    meta, release = read(HERE / "v4/release.nys")
    _, sketch = read(HERE / "v4/private.sketch.nys")
    bounds, a = sensitivities(release, meta), [int(x) for x in anchors(release).flatten()]
    rows, sums, squares = (integers(sketch[f"cell_{n}"]).flatten() for n in ("rows", "sum", "square"))
    d = len(meta["columns"])
    exact = {
        "counts": rows,
        "sums": [s - rows[i // d] * a[i] for i, s in enumerate(sums)],
        "squares": [s - 2 * a[i] * sums[i] + rows[i // d] * a[i] ** 2 for i, s in enumerate(squares)],
        "kernel": integers(sketch["features"]).flatten(),
        "totals": integers(sketch["sum"]).flatten(),
        "products": integers(sketch["outer"]).flatten(),
    }
    for cost in meta["release"]["mechanisms"]:
        name, square = cost["name"], bounds[cost["name"]]
        assert int(cost["sensitivity_squared"]) == square, f"release: Δ² of {name}"
        units = -(-(square << 71) // cost["rho"])
        assert cost["variance"] == f"{units}/65536", f"release: variance of {name}"
        noise = integers(release[f"noisy.{name}"]) - np.array(exact[name], object)
        assert (np.abs(noise.astype(float)) < 7 * math.sqrt(units / 65536)).all(), f"release: noise of {name}"
    print("v4/release: variances follow from the plan")


def main():
    for name, columns in ROWS.items():
        plan_path = HERE / f"{name}.plan.nys"
        _, plan = read(plan_path)
        meta, sketch = read(HERE / f"{name}.sketch.nys")
        sections = meta.get("sections", {})
        fingerprint = hashlib.sha256(without_sections(plan_path, sections)).hexdigest()
        assert meta["fingerprint"] == fingerprint, "fingerprint"
        version = int(name[1])
        assert meta["format"] == version and ("kernel" in meta) == (version > 1), "version"
        assert ("private" in meta) == (version > 3), "version"
        assert all((key in meta) == (version > 2) for key in ("categories", "steps", "units")), "version"
        rule = sections.pop("folds", None)
        assert sections == {s: digest(plan, s) for s in sections}, "digests of sections"
        sums = compute(plan, meta, columns())
        for key, want in sums.items():
            got = integers(sketch[key])
            assert got.shape == want.shape and (got == want).all(), f"{name}: {key}"
        extra = set()
        if rule is not None:
            sections["folds"] = rule
            extra = check_folds(name, plan, meta, columns(), sketch, sums)
        assert set(sketch) == set(plan) | set(sums) | extra, f"{name}: tensors"
        print(f"{name}: {', '.join(sums)} agree to the last bit")
    check_release()


main()
