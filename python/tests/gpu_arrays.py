"""Arrays in GPU memory, made with the driver alone, without an array library."""

from __future__ import annotations

import ctypes
import struct

import numpy as np

ADDRESS = ctypes.c_uint64


class Driver:
    """The CUDA driver, with the first GPU initialised for this thread."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self("cuInit", ctypes.c_uint(0))
        device, context, count = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
        self("cuDeviceGetCount", ctypes.byref(count))
        self("cuDeviceGet", ctypes.byref(device), ctypes.c_int(0))
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("cuCtxSetCurrent", context)
        self.count = count.value

    def __call__(self, function: str, *arguments: object) -> None:
        code = getattr(self.library, function)(*arguments)
        assert code == 0, f"{function} returns {code}"

    def stream(self) -> int:
        handle = ctypes.c_void_p()
        self("cuStreamCreate", ctypes.byref(handle), ctypes.c_uint(1))
        assert handle.value
        return handle.value


class Memory:
    """A copy of the bytes of an array in GPU memory."""

    def __init__(self, driver: Driver, array: np.ndarray) -> None:
        self.driver, address = driver, ADDRESS()
        driver("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(array.nbytes, 1)))
        self.address = address.value
        if array.nbytes:
            driver(
                "cuMemcpyHtoD_v2", address, ctypes.c_void_p(array.ctypes.data),
                ctypes.c_size_t(array.nbytes),
            )  # fmt: skip

    def __del__(self) -> None:
        self.driver("cuMemFree_v2", ADDRESS(self.address))


class There:
    """A view of an array in GPU memory. Values of bfloat16 are given as 16-bit words."""

    def __init__(self, driver: Driver, whole: np.ndarray, view=lambda whole: whole) -> None:
        whole = np.ascontiguousarray(whole)
        self.host = view(whole)
        self.memory = Memory(driver, whole)
        self.address = self.memory.address + self.host.ctypes.data - whole.ctypes.data
        self.shape = self.host.shape


class WithInterface(There):
    """An array with Numba's interface and a method of CuPy."""

    stream: int | None = None
    version = 3
    more: dict[str, object] = {}

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        c_order = self.host.flags.c_contiguous
        return {
            "shape": self.shape,
            "typestr": self.host.dtype.str,
            "data": (self.address if self.host.size else 0, True),
            "strides": None if c_order else self.host.strides,
            "stream": self.stream,
            "version": self.version,
            **self.more,
        }

    def get(self) -> np.ndarray:
        return self.host.copy()


class OnlyInterface(WithInterface):
    """An array that cannot be copied to the host."""

    get = None  # type: ignore[assignment]

    def __getattribute__(self, name: str) -> object:
        if name == "get":
            raise AttributeError(name)
        return super().__getattribute__(name)


_DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_new_capsule = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", ctypes.pythonapi))


class WithDlpack(There):
    """An array with DLPack."""

    kind = 2  # floating-point numbers; 4 is bfloat16
    device = 2  # CUDA
    version: tuple[int, int] | None = None
    #: Offset of the values from the address.
    offset = 0

    def __init__(self, driver: Driver, whole: np.ndarray, view=lambda whole: whole) -> None:
        super().__init__(driver, whole, view)
        self.asked: list[object] = []
        #: Capsules that exist.
        self.alive: list[object] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.device, 0)

    def __dlpack__(self, *, stream: object = None) -> object:
        self.asked.append(stream)
        n, item = self.host.ndim, self.host.dtype.itemsize
        shape = (ctypes.c_int64 * n)(*self.shape)
        strides = (ctypes.c_int64 * n)(*(s // item for s in self.host.strides))
        c_order = self.host.flags.c_contiguous
        tensor = struct.pack(
            "<QiiiBBHQQQ", self.address - self.offset, self.device, 0, n, self.kind, 8 * item, 1,
            ctypes.addressof(shape), 0 if c_order else ctypes.addressof(strides), self.offset,
        )  # fmt: skip
        if self.version is None:
            managed, name = tensor + struct.pack("<QQ", 0, 0), b"dltensor"
        else:
            managed = struct.pack("<IIQQQ", *self.version, 0, 0, 0) + tensor
            name = b"dltensor_versioned"
        held = ctypes.create_string_buffer(managed, len(managed))

        alive = self.alive
        destructor = _DESTRUCTOR(lambda _capsule: alive.clear())
        alive.append(name)
        # The objects live as long as this one, which is longer than the capsule.
        self.held = (held, name, shape, strides, destructor)
        destroy = ctypes.cast(destructor, ctypes.c_void_p)
        return _new_capsule(ctypes.addressof(held), name, destroy)


def bfloat16(values: np.ndarray) -> np.ndarray:
    """Return the upper halves of single-precision numbers, as 16-bit words."""
    return (np.asarray(values, dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16)


def widened(words: np.ndarray) -> np.ndarray:
    """Convert the words back to numbers."""
    return (words.astype(np.uint32) << 16).view(np.float32)
