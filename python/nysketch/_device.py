"""Arrays in the memory of a GPU: where their values lie, and how they come to this machine.

DLPack says where an array lies and of which type it is, and has what wrote it waited for; the
interface of Numba says the same of arrays without DLPack. Nothing is imported for it: torch, CuPy,
JAX and cuDF are there if X is theirs.
"""

from __future__ import annotations

import ctypes
import math
import sys
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Located", "how_to_convert", "is_cudf", "located", "on_host"]

# Kinds of memory in DLPack: that of CUDA's GPUs, and that which they share with the host.
_CUDA = (2, 13)
# Kinds of number in DLPack.
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}
# The stream that other streams wait for unless they say that they do not.
_DEFAULT_STREAM = 1


class Located(NamedTuple):
    """Where the values of an array lie in the memory of a GPU."""

    address: int
    dtype: str
    shape: tuple[int, ...]
    #: How many values it is from one to the next, by dimension.
    strides: tuple[int, ...]
    #: The stream whose work must be waited for, if there is any.
    stream: int | None
    #: What keeps the memory.
    keep: Any


def located(X: Any) -> Located | None:
    """Where X lies, if it is an array in the memory of a GPU."""
    if _is_tensor(X):
        X = X.detach()
    if not _is_there(X):
        return None
    return _by_dlpack(X) if _has(X, "__dlpack__") else _by_interface(X)


def on_host(X: Any) -> Any:
    """X in the memory of this machine: a copy, if it is an array or a frame in that of a GPU."""
    if is_cudf(X):
        return X.to_pandas()
    if _is_tensor(X):
        X = X.detach().cpu()
        return (X.float() if str(X.dtype) == "torch.bfloat16" else X).numpy()
    if not _is_there(X):
        return X
    copied = _copied(X)
    return copied.astype(np.float32) if copied.dtype.name == "bfloat16" else copied


def _copied(X: Any) -> np.ndarray:
    for name in ("get", "copy_to_host"):  # Of CuPy, and of Numba.
        if hasattr(X, name):
            return getattr(X, name)()
    if hasattr(X, "__array__"):
        return np.asarray(X)
    raise TypeError(
        f"X is a {type(X).__name__} in GPU memory, and must be in the memory of this machine here; "
        "pass a copy of it"
    )


def is_cudf(X: Any) -> bool:
    """Whether X is a frame or a column of cuDF."""
    return type(X).__module__.split(".")[0] == "cudf" and hasattr(X, "to_pandas")


def _is_tensor(X: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def _is_there(X: Any) -> bool:
    if isinstance(X, np.ndarray):
        return False
    if _has(X, "__dlpack_device__"):
        try:
            return int(X.__dlpack_device__()[0]) in _CUDA
        except (BufferError, RuntimeError, TypeError, ValueError):
            return False  # Such as an array that several GPUs share.
    return _has(X, "__cuda_array_interface__")


def _has(X: Any, name: str) -> bool:
    """Whether X has a method or property of its class; frames may take other names for columns."""
    return hasattr(type(X), name) and hasattr(X, name)


def how_to_convert(X: Any, dtype: str) -> str:
    """What makes numbers that can be read of X; integers may need all of double precision."""
    if "int" in dtype:
        return "X.double()" if _is_tensor(X) else "X.astype('float64')"
    return "X.float()" if _is_tensor(X) else "X.astype('float32')"


# ---- The interface of Numba ----------------------------------------------------------------------


def _by_interface(X: Any) -> Located:
    said = X.__cuda_array_interface__
    if said.get("mask") is not None:
        raise TypeError("X has a mask; fill in NaN where values are missing")
    dtype, shape = np.dtype(said["typestr"]), tuple(said["shape"])
    strides = said.get("strides")
    if strides is None:
        strides = _row_major(shape)
    elif any(stride % dtype.itemsize for stride in strides):
        raise TypeError(f"X has values of {dtype.itemsize} bytes at {strides}; pass a copy of it")
    else:
        strides = tuple(stride // dtype.itemsize for stride in strides)
    # Earlier versions do not say what wrote it.
    stream = said.get("stream") if said["version"] >= 3 else _DEFAULT_STREAM
    return Located(said["data"][0] or 0, str(dtype), shape, strides, stream, X)


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


# ---- DLPack --------------------------------------------------------------------------------------


class _Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("number", ctypes.c_int32)]


class _Type(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("dimensions", ctypes.c_int32),
        ("type", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Versioned(ctypes.Structure):
    """What comes before the tensor since version 1."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


# Functions of our own: types set on those of `ctypes.pythonapi` would be everybody's.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _by_dlpack(X: Any) -> Located:
    # A capsule that nobody takes over gives the memory back when it goes.
    capsule = _capsule(X)
    tensor = _tensor(capsule)
    n = tensor.dimensions
    shape = tuple(tensor.shape[:n]) if n else ()
    strides = tuple(tensor.strides[:n]) if tensor.strides else _row_major(shape)
    address = (tensor.data or 0) + tensor.byte_offset
    return Located(address, _name(tensor.type), shape, strides, _DEFAULT_STREAM, capsule)


def _capsule(X: Any) -> Any:
    """X by DLPack, the default stream waiting for what wrote it."""
    if not _is_tensor(X):
        return X.__dlpack__(stream=_DEFAULT_STREAM)
    import torch

    with torch.cuda.device(X.device):  # It refuses tensors of another GPU than the current one.
        return X.__dlpack__(stream=_DEFAULT_STREAM)


def _tensor(capsule: Any) -> _Tensor:
    if _is_valid(capsule, b"dltensor"):
        return _Tensor.from_address(_pointer(capsule, b"dltensor"))
    versioned = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
    if versioned.major != 1:
        raise BufferError(f"X comes by DLPack {versioned.major}.{versioned.minor}, not 1")
    return versioned.tensor


def _name(kind: _Type) -> str:
    """A type as NumPy calls it."""
    if kind.kind not in _KINDS:
        return f"numbers of DLPack's type {kind.kind}"
    name = _KINDS[kind.kind]
    name += "" if name == "bool" else str(kind.bits)
    return name if kind.lanes == 1 else f"vectors of {kind.lanes} {name}"
