"""FORMAT.md, read by somebody else: recomputes the golden sketches with numpy.

Uses nothing of nysketch. Reads each plan with the safetensors package, follows the arithmetic of
FORMAT.md on the golden rows, and compares every sum with the sketch file, integer by integer.
"""

import hashlib
import json
import pathlib
import zlib

import numpy as np
from safetensors import safe_open

HERE = pathlib.Path(__file__).parent
F32 = np.float32
EXP2 = np.array([0x3F317214, 0x3E75FCDF, 0x3D635BAA, 0x3C1E7545, 0x3AADDD0A], np.uint32).view(F32)
ROUND = F32(12582912.0)


def rows():
    i, j = np.meshgrid(np.arange(300), np.arange(3), indexing="ij")
    values = ((i * i * (j + 3) + 7 * i + 11 * j) % 101) / 8.0 + j * 100.0
    return values, (np.arange(300) % 4) * 0.5


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


# Distance of one coordinate, rate of a bandwidth, and the factor in sigma^2 at which a kernel is its own square.
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
    """Kernel values of every rung, in units of 2^-23."""
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


def compute(plan, meta):
    """Every sum that the plan asks for, as Python integers."""
    values, weights = rows()
    d = values.shape[1]
    w = np.ones(len(values), dtype=object)
    if meta["weights"]:
        w = np.array([int(x) for x in np.rint(weights / plan["weight_unit"][0])], dtype=object)
    y = (values - plan["centre"]) * (1.0 / plan["scale"])
    z = y.astype(F32)
    q = np.rint(y * 2.0 ** -plan["exponent"].astype(np.float64)).astype(np.int64).astype(object)
    sums = {"rows": [w.sum()], "skipped": [0]}
    total = lambda x: (w[:, None] * x.astype(object)).sum(0)
    bandwidths = plan["bandwidths"]
    if meta["features"] == "nystrom":
        points = plan["landmarks"]
        name = meta.get("kernel", "gaussian")
        term, rate, square = KERNELS[name]
        distance = np.zeros((len(z), len(points)), F32)
        for k in range(d):
            distance = term(z[:, k, None] - points[None, :, k], distance)
        nearest = distance.argmin(1)
        least = distance[np.arange(len(z)), nearest]
        if "kernel" in meta["collect"]:
            sums["features"] = [total(u) for u in rungs(distance, bandwidths, name)]
            sums["coverage"] = [(w * units(kernel(least, rate(s / square))).astype(object)).sum() for s in bandwidths]
        if "cells" in meta["collect"]:
            cell = [nearest == j for j in range(len(points))]
            sums["cell_rows"] = [w[c].sum() for c in cell]
            sums["cell_sum"] = [(w[c, None] * q[c]).sum(0) if c.any() else [0] * d for c in cell]
            sums["cell_square"] = [(w[c, None] * q[c] ** 2).sum(0) if c.any() else [0] * d for c in cell]
    else:
        phase = np.zeros((len(z), len(plan["frequencies"])), F32)
        for k in range(d):
            phase = fma(plan["frequencies"][None, :, k], z[:, k, None], phase)
        factors = [F32(2.0 / np.pi / np.sqrt(s)) for s in bandwidths]
        sums["features"] = [np.concatenate([total(x) for x in cos_sin(phase, f)]) for f in factors]
    if "moments" in meta["collect"]:
        sums["sum"] = total(q)
        sums["outer"] = [(w * q[:, i] * q[:, j]).sum() for i in range(d) for j in range(i + 1)]
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
    """The bytes of a plan's file without the tensors of its sections: what the fingerprint is taken of."""
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
    """SHA-256 of the tensors of a section: each after a line with its name, type and shape."""
    hashed = hashlib.sha256()
    for name in sorted(n for n in plan if n.partition(".")[0] == section):
        shape = " ".join(str(n) for n in plan[name].shape)
        hashed.update(f"{name} F32 {shape}\n".encode() + plan[name].astype("<f4").tobytes())
    return hashed.hexdigest()


def main():
    for name in ("v1/nystrom", "v1/weighted", "v1/fourier", "v2/laplace", "v2/witnesses", "v2/counted"):
        plan_path = HERE / f"{name}.plan.nys"
        _, plan = read(plan_path)
        meta, sketch = read(HERE / f"{name}.sketch.nys")
        sections = meta.get("sections", {})
        fingerprint = hashlib.sha256(without_sections(plan_path, sections)).hexdigest()
        assert meta["fingerprint"] == fingerprint, "fingerprint"
        version = int(name[1])
        assert meta["format"] == version and ("kernel" in meta) == (version > 1), "version"
        assert sections == {s: digest(plan, s) for s in sections}, "digests of sections"
        sums = compute(plan, meta)
        for key, want in sums.items():
            got = integers(sketch[key])
            assert got.shape == want.shape and (got == want).all(), f"{name}: {key}"
        assert set(sketch) == set(plan) | set(sums), f"{name}: tensors"
        print(f"{name}: {', '.join(sums)} agree to the last bit")


main()
