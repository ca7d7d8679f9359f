// A GPU for machines without one: CUDA's driver and NVRTC in one library, for tests.
//
// NVRTC hands the kernel text to the host compiler, with device.h in front; the "cubin" is the shared object that comes
// out. The driver loads it and runs blocks one after the other; block.h says how threads take turns. Device memory is
// host memory: poisoned when it is taken, with guards on both sides that are checked after each launch and when it is
// freed. Everything runs at once, in the calling thread, under one lock. Misuse that a GPU would not forgive ends the
// process with a message.
//
// The environment, read by cuInit, says what machine this is and what goes wrong:
//   EMULATED_DEVICES     number of GPUs (1); 0: cuInit finds none
//   EMULATED_MEMORY      bytes of each GPU (2³⁰)
//   EMULATED_DRIVER      CUDA version of the driver (13000)
//   EMULATED_LOST_AFTER  launches that work; the next one, and every call after it, returns CUDA_ERROR_LAUNCH_FAILED
//   EMULATED_OLD         the number of a GPU of compute capability 7.5 (none); the others have 9.0
//   EMULATED_BACKWARDS   1: threads and blocks run last first, to show a missing barrier
// and, read by nvrtcCompileProgram,
//   EMULATED_WRONG       1: every difference is off by some 2⁻²⁰ of itself
//   EMULATED_CACHE       a folder where compiled kernels are kept from one process to the next; none by default

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

#ifndef DEVICE_H
#error "name the header: -DDEVICE_H='\"/path/to/emulator/device.h\"'"
#endif
#include "block.h"

#define API extern "C" __attribute__((visibility("default"))) int

enum {
    SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101,
    INVALID_IMAGE = 200, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_FOUND = 500, LAUNCH_FAILED = 719
};

static long long number(const char *name, long long otherwise) {
    const char *text = getenv(name);
    return text && *text ? atoll(text) : otherwise;
}

// ---- The machine -----------------------------------------------------------------------------------

enum { GUARD = 256, POISON = 0xa5 };
struct Memory { u64 bytes; int device; };
typedef std::map<u64, Memory> Memories;
enum Kind { STREAM, EVENT, MODULE, FUNCTION };
struct Handle {
    Kind kind;
    int device, file;                         // of a module
    std::map<std::string, Handle *> functions;  // of a module
    void *library;
    std::string name;                         // of a function
    Kernel kernel;
    ModuleHead *head;
};

static std::mutex one_at_a_time;
static int devices = -1;
static u64 memory_of_each, used[64];
static long long launches_left;
static bool lost = false;
static Memories device_memory, host_memory;
static std::set<Handle *> handles;
static thread_local int current_device = -1;

/// Every call takes the lock; those that need a context ask for trouble first.
#define LOCK std::lock_guard<std::mutex> guard(one_at_a_time)
#define CONTEXT                                      \
    LOCK;                                            \
    if (devices < 0) return NOT_INITIALIZED;         \
    if (lost) return LAUNCH_FAILED;                  \
    if (current_device < 0) return INVALID_CONTEXT

static Memories::iterator holding(Memories &all, u64 at, u64 bytes) {
    auto found = all.upper_bound(at);
    if (found == all.begin()) return all.end();
    --found;
    u64 offset = at - found->first, size = found->second.bytes;
    return offset <= size && bytes <= size - offset ? found : all.end();
}

static void check_guards(u64 at, u64 bytes) {
    static const std::string untouched(GUARD, (char)POISON);
    bool before = memcmp((char *)at - GUARD, untouched.data(), GUARD);
    bool after = memcmp((char *)at + bytes, untouched.data(), GUARD);
    const char *side = before ? "before" : "after";
    if (before || after)
        misuse(std::string("wrote ") + side + " an allocation of " + std::to_string(bytes) + " bytes");
}

static u64 take(Memories &all, u64 bytes) {
    char *start = (char *)aligned_alloc(GUARD, (bytes + 3 * GUARD) / GUARD * GUARD);
    if (!start) return 0;
    memset(start, POISON, bytes + 2 * GUARD);
    all[(u64)start + GUARD] = {bytes, current_device};
    return (u64)start + GUARD;
}

static int release(Memories &all, u64 at) {
    auto found = all.find(at);
    if (found == all.end()) return INVALID_VALUE;
    check_guards(at, found->second.bytes);
    if (&all == &device_memory) used[found->second.device] -= found->second.bytes;
    free((char *)at - GUARD);
    all.erase(found);
    return SUCCESS;
}

static bool known(Handle *handle, Kind kind) { return handles.count(handle) && handle->kind == kind; }
static bool stream_known(Handle *stream) { return !stream || known(stream, STREAM); }

static Handle *make(Kind kind) {
    Handle *made = new Handle();
    made->kind = kind;
    made->device = current_device;
    handles.insert(made);
    return made;
}

static int destroy(Handle *handle, Kind kind) {
    if (!known(handle, kind)) return INVALID_HANDLE;
    handles.erase(handle);
    delete handle;
    return SUCCESS;
}

// ---- Driver: devices and contexts ------------------------------------------------------------------

API cuInit(u32) {
    LOCK;
    if (devices >= 0) return devices ? SUCCESS : NO_DEVICE;
    devices = (int)std::min(64ll, number("EMULATED_DEVICES", 1));
    memory_of_each = number("EMULATED_MEMORY", 1 << 30);
    launches_left = number("EMULATED_LOST_AFTER", -1);
    on.backwards = number("EMULATED_BACKWARDS", 0);
    on.block.barrier = barrier;
    on.block.exchange = exchange;
    return devices ? SUCCESS : NO_DEVICE;
}
API cuDriverGetVersion(int *version) { return *version = (int)number("EMULATED_DRIVER", 13000), SUCCESS; }
API cuDeviceGetCount(int *count) { return devices < 0 ? NOT_INITIALIZED : (*count = devices, SUCCESS); }
API cuDeviceGet(int *device, int ordinal) {
    if (devices < 0) return NOT_INITIALIZED;
    return ordinal < 0 || ordinal >= devices ? INVALID_DEVICE : (*device = ordinal, SUCCESS);
}
API cuDeviceGetName(char *name, int length, int device) {
    if (device < 0 || device >= devices) return INVALID_DEVICE;
    return snprintf(name, length, "Emulated GPU"), SUCCESS;
}
API cuDeviceGetAttribute(int *value, int attribute, int device) {
    static const std::map<int, int> known = {
        {1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 2147483647}, {6, 65535}, {7, 65535}, {8, 49152}, {9, 65536},
        {10, 32}, {12, 65536}, {13, 1500000}, {16, 2}, {36, 2000000}, {37, 4096}, {38, 4 << 20}, {39, 2048}, {40, 2},
        {41, 1}, {75, 9}, {76, 0}, {81, 233472}, {82, 65536}, {97, 232448}, {106, 32}};
    if (device < 0 || device >= devices) return INVALID_DEVICE;
    if (attribute < 1 || attribute > 150) return INVALID_VALUE;
    if (device == number("EMULATED_OLD", -1) && (attribute == 75 || attribute == 76)) return *value = attribute == 75 ? 7 : 5, SUCCESS;
    auto found = known.find(attribute);
    return *value = found == known.end() ? 0 : found->second, SUCCESS;
}
// A context is the number of its device and one.
API cuDevicePrimaryCtxRetain(void **context, int device) {
    LOCK;
    if (lost) return LAUNCH_FAILED;
    return device < 0 || device >= devices ? INVALID_DEVICE : (*context = (void *)(size_t)(device + 1), SUCCESS);
}
API cuDevicePrimaryCtxRelease_v2(int device) { return device < 0 || device >= devices ? INVALID_DEVICE : SUCCESS; }
API cuCtxSetCurrent(void *context) {
    LOCK;
    if (lost) return LAUNCH_FAILED;
    if ((long)context > devices) return INVALID_CONTEXT;
    return current_device = (int)(size_t)context - 1, SUCCESS;
}
API cuCtxGetCurrent(void **context) { return *context = (void *)(size_t)(current_device + 1), SUCCESS; }

static const std::map<int, const char *> errors = {
    {SUCCESS, "CUDA_SUCCESS"},
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
    {NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
    {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
    {LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"}};
API cuGetErrorName(int error, const char **text) {
    auto found = errors.find(error);
    return found == errors.end() ? (*text = 0, INVALID_VALUE) : (*text = found->second, SUCCESS);
}

// ---- Driver: memory --------------------------------------------------------------------------------

API cuMemGetInfo_v2(size_t *free, size_t *total) {
    CONTEXT;
    *total = memory_of_each;
    *free = memory_of_each - used[current_device];
    return SUCCESS;
}
API cuMemAlloc_v2(u64 *at, size_t bytes) {
    CONTEXT;
    if (bytes == 0) return INVALID_VALUE;
    if (bytes > memory_of_each - used[current_device] || !(*at = take(device_memory, bytes))) return OUT_OF_MEMORY;
    used[current_device] += bytes;
    return SUCCESS;
}
API cuMemFree_v2(u64 at) { CONTEXT; return at ? release(device_memory, at) : SUCCESS; }
API cuMemHostAlloc(void **at, size_t bytes, u32) {
    CONTEXT;
    if (bytes == 0) return INVALID_VALUE;
    return (*at = (void *)take(host_memory, bytes)) ? SUCCESS : OUT_OF_MEMORY;
}
API cuMemFreeHost(void *at) { CONTEXT; return release(host_memory, (u64)at); }

/// What a copy needs: the device side lies in one live allocation.
static int move(u64 to, u64 from, size_t bytes, bool to_device, bool from_device, Handle *stream) {
    CONTEXT;
    if (!stream_known(stream)) return INVALID_HANDLE;
    if (to_device && holding(device_memory, to, bytes) == device_memory.end()) return INVALID_VALUE;
    if (from_device && holding(device_memory, from, bytes) == device_memory.end()) return INVALID_VALUE;
    return memmove((void *)to, (void *)from, bytes), SUCCESS;
}
API cuMemcpyHtoD_v2(u64 to, const void *from, size_t bytes) { return move(to, (u64)from, bytes, true, false, 0); }
API cuMemcpyHtoDAsync_v2(u64 to, const void *from, size_t bytes, Handle *stream) {
    return move(to, (u64)from, bytes, true, false, stream);
}
API cuMemcpyDtoHAsync_v2(void *to, u64 from, size_t bytes, Handle *stream) {
    return move((u64)to, from, bytes, false, true, stream);
}
API cuMemcpyDtoDAsync_v2(u64 to, u64 from, size_t bytes, Handle *stream) {
    return move(to, from, bytes, true, true, stream);
}
API cuMemsetD8Async(u64 at, unsigned char value, size_t bytes, Handle *stream) {
    CONTEXT;
    if (!stream_known(stream)) return INVALID_HANDLE;
    if (holding(device_memory, at, bytes) == device_memory.end()) return INVALID_VALUE;
    return memset((void *)at, value, bytes), SUCCESS;
}
API cuPointerGetAttribute(void *value, int attribute, u64 at) {
    CONTEXT;
    bool host = holding(host_memory, at, 1) != host_memory.end();
    Memories &all = host ? host_memory : device_memory;
    auto found = holding(all, at, 1);
    if (found == all.end() || (attribute != 2 && attribute != 9)) return INVALID_VALUE;
    if (attribute == 2) *(u32 *)value = host ? 1 : 2;
    else *(int *)value = found->second.device;
    return SUCCESS;
}

// ---- Driver: streams and events --------------------------------------------------------------------

API cuStreamCreate(Handle **stream, u32) { CONTEXT; return *stream = make(STREAM), SUCCESS; }
API cuStreamSynchronize(Handle *stream) { CONTEXT; return stream_known(stream) ? SUCCESS : INVALID_HANDLE; }
API cuStreamDestroy_v2(Handle *stream) { CONTEXT; return destroy(stream, STREAM); }
API cuStreamWaitEvent(Handle *stream, Handle *event, u32) {
    CONTEXT;
    return stream_known(stream) && known(event, EVENT) ? SUCCESS : INVALID_HANDLE;
}
API cuEventCreate(Handle **event, u32) { CONTEXT; return *event = make(EVENT), SUCCESS; }
API cuEventRecord(Handle *event, Handle *stream) {
    CONTEXT;
    if (!stream_known(stream) || !known(event, EVENT)) return INVALID_HANDLE;
    if (event->device != (stream ? stream->device : current_device)) return INVALID_HANDLE;
    return SUCCESS;
}
API cuEventSynchronize(Handle *event) { CONTEXT; return known(event, EVENT) ? SUCCESS : INVALID_HANDLE; }
API cuEventDestroy_v2(Handle *event) { CONTEXT; return destroy(event, EVENT); }

// ---- Driver: modules and launches ------------------------------------------------------------------

// An image: these eight bytes, the length of the shared object, the shared object.
static const char MAGIC[9] = "EMULATED";

API cuModuleLoadData(Handle **module, const void *image) {
    CONTEXT;
    if (memcmp(image, MAGIC, 8)) return INVALID_IMAGE;
    u64 length;
    memcpy(&length, (const char *)image + 8, 8);
    // The file stays open as long as the library is loaded, so that no other gets its name.
    int file = memfd_create("emulated-module", MFD_CLOEXEC);
    if (file < 0 || write(file, (const char *)image + 16, length) != (ssize_t)length) return OUT_OF_MEMORY;
    void *library = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) return fprintf(stderr, "emulated GPU: %s\n", dlerror()), close(file), INVALID_IMAGE;
    *module = make(MODULE);
    (*module)->file = file;
    (*module)->library = library;
    (*module)->head = (ModuleHead *)dlsym(library, "emulated_head");
    (*module)->head->block = &on.block;
    return SUCCESS;
}
API cuModuleUnload(Handle *module) {
    CONTEXT;
    if (!known(module, MODULE)) return INVALID_HANDLE;
    for (auto &each : module->functions) destroy(each.second, FUNCTION);
    dlclose(module->library);
    close(module->file);
    return destroy(module, MODULE);
}
API cuModuleGetFunction(Handle **function, Handle *module, const char *name) {
    CONTEXT;
    if (!known(module, MODULE)) return INVALID_HANDLE;
    Kernel kernel = (Kernel)dlsym(module->library, name);
    if (!kernel) return NOT_FOUND;
    Handle *&made = module->functions[name];
    if (!made) made = make(FUNCTION);
    made->device = module->device;
    made->kernel = kernel;
    made->name = name;
    made->head = module->head;
    return *function = made, SUCCESS;
}
API cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, Handle *function, int, size_t) {
    CONTEXT;
    return known(function, FUNCTION) ? (*blocks = 2, SUCCESS) : INVALID_HANDLE;
}
API cuLaunchKernel(Handle *function, u32 across, u32 down, u32 deep, u32 x, u32 y, u32 z, u32, Handle *stream,
                   void **arguments, void **) {
    CONTEXT;
    if (!known(function, FUNCTION) || !stream_known(stream) || function->device != current_device) return INVALID_HANDLE;
    if (stream && stream->device != current_device) return INVALID_HANDLE;
    u64 threads = (u64)x * y * z, blocks = (u64)across * down * deep;
    if (!threads || threads > MOST_THREADS || z > 64) return INVALID_VALUE;
    if (!blocks || across > 2147483647u || down > 65535 || deep > 65535 || !arguments) return INVALID_VALUE;
    if (launches_left == 0) return lost = true, LAUNCH_FAILED;
    if (launches_left > 0) launches_left--;
    running = function->name;
    on.kernel = function->kernel;
    on.argument = arguments[0];
    on.block.blocks = {across, down, deep};
    shape_blocks({x, y, z}, (u32)threads);
    memset(function->head->shared, POISON, function->head->shared_end - function->head->shared);
    for (u64 done = 0; done < blocks; done++) {
        u64 at = on.backwards ? blocks - 1 - done : done;
        on.block.block = {(u32)(at % across), (u32)(at / across % down), (u32)(at / across / down)};
        run_block((u32)threads);
    }
    for (auto &each : device_memory) check_guards(each.first, each.second.bytes);
    return SUCCESS;
}

// ---- NVRTC -----------------------------------------------------------------------------------------

struct Program { std::string source, name, image, log; };
enum { NVRTC_INVALID_INPUT = 3, NVRTC_COMPILATION = 6 };

static std::string content(const std::string &path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

static std::string quoted(const std::string &text) {
    std::string shell = "'";
    for (char c : text) shell += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return shell + "'";
}

/// Every operation rounds once: no contraction, no fast mathematics. The text comes from standard input.
static std::string compiler(int count, const char *const *options) {
    std::string command = "c++ -x c++ -std=c++17 -O2 -shared -fPIC -w -ffp-contract=off -fno-fast-math -fvisibility=hidden "
                          "-Wl,-Bsymbolic -include " + quoted(DEVICE_H);
#ifdef __x86_64__
    if (__builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2")) command += " -mavx2 -mfma";
#endif
    if (number("EMULATED_WRONG", 0)) command += " -DEMULATED_WRONG";
    for (int i = 0; i < count; i++) {
        std::string option = options[i];
        if (option.rfind("--define-macro=", 0) == 0) option = "-D" + option.substr(15);
        if (option.rfind("-D", 0) == 0) command += " " + quoted(option);
    }
    return command;
}

API nvrtcVersion(int *major, int *minor) { return *major = 12, *minor = 99, SUCCESS; }
API nvrtcCreateProgram(Program **program, const char *source, const char *name, int, const char *const *,
                       const char *const *) {
    return *program = new Program{source, name ? name : "default_program", "", ""}, SUCCESS;
}
API nvrtcCompileProgram(Program *program, int count, const char *const *options) {
    std::string command = compiler(count, options), text = "#line 1 \"" + program->name + "\"\n" + program->source, kept;
    if (const char *folder = getenv("EMULATED_CACHE")) {
        size_t key = std::hash<std::string>()(command + text + content(DEVICE_H));
        kept = std::string(folder) + "/" + std::to_string(key) + ".image";
        program->image = content(kept);
        if (!program->image.empty()) return SUCCESS;
    }
    std::string folder = std::string(getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp") + "/emulated-XXXXXX";
    if (!mkdtemp(&folder[0])) return NVRTC_COMPILATION;
    std::ofstream(folder + "/text") << text;
    int failed = system((command + " -o " + quoted(folder + "/so") + " - <" + quoted(folder + "/text") + " >" +
                         quoted(folder + "/log") + " 2>&1").c_str());
    std::string object = content(folder + "/so");
    program->log = content(folder + "/log");
    for (const char *file : {"/text", "/so", "/log"}) unlink((folder + file).c_str());
    rmdir(folder.c_str());
    if (failed) return NVRTC_COMPILATION;
    u64 length = object.size();
    program->image = MAGIC + std::string((char *)&length, 8) + object;
    if (!kept.empty()) {
        // Written under another name first: other processes read it too.
        std::string draft = kept + "." + std::to_string(getpid());
        std::ofstream(draft, std::ios::binary) << program->image;
        rename(draft.c_str(), kept.c_str());
    }
    return SUCCESS;
}
API nvrtcGetCUBINSize(Program *program, size_t *size) { return *size = program->image.size(), SUCCESS; }
API nvrtcGetCUBIN(Program *program, char *to) { return memcpy(to, program->image.data(), program->image.size()), SUCCESS; }
API nvrtcGetPTXSize(Program *program, size_t *size) { return *size = program->image.size(), SUCCESS; }
API nvrtcGetPTX(Program *program, char *to) { return memcpy(to, program->image.data(), program->image.size()), SUCCESS; }
API nvrtcGetProgramLogSize(Program *program, size_t *size) { return *size = program->log.size() + 1, SUCCESS; }
API nvrtcGetProgramLog(Program *program, char *to) {
    return memcpy(to, program->log.c_str(), program->log.size() + 1), SUCCESS;
}
API nvrtcDestroyProgram(Program **program) { return delete *program, *program = 0, SUCCESS; }
API nvrtcGetNumSupportedArchs(int *count) { return *count = 3, SUCCESS; }
API nvrtcGetSupportedArchs(int *archs) { return archs[0] = 70, archs[1] = 80, archs[2] = 90, SUCCESS; }
