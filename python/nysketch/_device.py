"""Arrays in GPU memory: their addresses, and copies in the memory of this machine.

DLPack gives the address and the type of an array, and waits for the work that wrote it. Numba's
interface does the same for arrays without DLPack. This module imports no GPU package: torch, CuPy,
JAX or cuDF has been imported if X is one of its objects.
"""

from __future__ import annotations

import ctypes
import math
import sys
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Located", "how_to_convert", "is_cudf", "located", "on_host"]

# Kinds of memory in DLPack: that of CUDA GPUs, and CUDA managed memory.
_CUDA = (2, 13)
# Kinds of numbers in DLPack.
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}
# The legacy default stream, with which other streams synchronise unless they are non-blocking.
_DEFAULT_STREAM = 1


class Located(NamedTuple):
    """The place of an array's values in GPU memory."""

    address: int
    dtype: str
    shape: tuple[int, ...]
    #: Distance between consecutive values in each dimension, in values.
    strides: tuple[int, ...]
    #: The stream whose work must be waited for, if there is one.
    stream: int | None
    #: The object that keeps the memory alive.
    keep: Any


def located(X: Any) -> Located | None:
    """Return the place of X if it is an array in GPU memory, otherwise None."""
    if _is_tensor(X):
        X = X.detach()
    if not _is_there(X):
        return None
    return _by_dlpack(X) if _has(X, "__dlpack__") else _by_interface(X)


def on_host(X: Any) -> Any:
    """Return X in the memory of this machine: a copy of an array or a frame in GPU memory."""
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
    for name in ("get", "copy_to_host"):  # CuPy's and Numba's methods.
        if hasattr(X, name):
            return getattr(X, name)()
    if hasattr(X, "__array__"):
        return np.asarray(X)
    raise TypeError(
        f"X is a {type(X).__name__} in GPU memory, and must be in the memory of this machine here; "
        "pass a copy of it"
    )


def is_cudf(X: Any) -> bool:
    """Return whether X is a frame or a column of cuDF."""
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
            return False  # For example an array that several GPUs share.
    return _has(X, "__cuda_array_interface__")


def _has(X: Any, name: str) -> bool:
    """Return whether the class of X has an attribute; a frame may have a column of that name."""
    return hasattr(type(X), name) and hasattr(X, name)


def how_to_convert(X: Any, dtype: str) -> str:
    """Return code that converts X to supported numbers; integers may need double precision."""
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
    # Earlier versions do not name the stream that wrote the array.
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
    """The header before the tensor since version 1."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


# Private function objects: types set on functions of `ctypes.pythonapi` would be global.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _by_dlpack(X: Any) -> Located:
    # A capsule that is not consumed frees the memory when it is destroyed.
    capsule = _capsule(X)
    tensor = _tensor(capsule)
    n = tensor.dimensions
    shape = tuple(tensor.shape[:n]) if n else ()
    strides = tuple(tensor.strides[:n]) if tensor.strides else _row_major(shape)
    address = (tensor.data or 0) + tensor.byte_offset
    return Located(address, _name(tensor.type), shape, strides, _DEFAULT_STREAM, capsule)


def _capsule(X: Any) -> Any:
    """Return a DLPack capsule of X. The default stream waits for the work that wrote X."""
    if not _is_tensor(X):
        return X.__dlpack__(stream=_DEFAULT_STREAM)
    import torch

    with torch.cuda.device(X.device):  # PyTorch refuses tensors on any other GPU.
        return X.__dlpack__(stream=_DEFAULT_STREAM)


def _tensor(capsule: Any) -> _Tensor:
    if _is_valid(capsule, b"dltensor"):
        return _Tensor.from_address(_pointer(capsule, b"dltensor"))
    versioned = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
    if versioned.major != 1:
        raise BufferError(f"X comes by DLPack {versioned.major}.{versioned.minor}, not 1")
    return versioned.tensor


def _name(kind: _Type) -> str:
    """Return NumPy's name of a type."""
    if kind.kind not in _KINDS:
        return f"numbers of DLPack's type {kind.kind}"
    name = _KINDS[kind.kind]
    name += "" if name == "bool" else str(kind.bits)
    return name if kind.lanes == 1 else f"vectors of {kind.lanes} {name}"
