#include "bindings/train/gloo_calls.h"

#include <elf.h>
#include <link.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/mutex.h"

// Gloo tells whoever waits for a receive that its connection has ended, and not who waits for a
// send of more than the kernel takes at once, nor for a receive of which a part has come:
// `Pair::signalException` (gloo/transport/tcp/pair.cc) goes through the buffers of its tables, and
// an unbound buffer that is being written or read is in none of them. That thread waits for the
// group's timeout, which is half an hour.
//
// So two of Gloo's calls of the kernel are answered differently, on sockets of its groups alone and
// only once a connection has ended:
//   writev  what cannot be written any more counts as written, as what lies in the kernel's buffer
//           when the other side dies does. Whoever sends goes on, to its next operation.
//   recv    the end is told at the second time it is asked for. At the first, writing ends too, so
//           that the thread of Gloo's that asks, which writes what waits before it reads, lets go
//           of all who send before it tells who receive.
// And calls between functions of Gloo's own, which libtorch_cpu makes through its table of imports:
//   Pair::prepareRead      notes the buffer that this thread reads into next.
//   Pair::signalException  gives Gloo's own exception to that buffer too, when it is called because
//                          `recv` has told of the end.
//   Device::registerDescriptor, unregisterDescriptor  note which sockets are Gloo's connections,
//                          also of groups that connect at their first use (TORCH_GLOO_LAZY_INIT).
// A torch whose library has other names for them keeps its own behaviour there.
namespace nb = nanobind;
using namespace nb::literals;

namespace troupe::bindings {
namespace {

constexpr std::string_view kLibrary = "libtorch_cpu.so";

// For the life of the process: torch's library calls in until its end, on any thread.
struct Groups {
  Mutex mutex;
  // On which groups listen: what was accepted there has the port.
  std::set<std::uint16_t> ports ABSL_GUARDED_BY(mutex);
  std::set<std::uint64_t> inodes ABSL_GUARDED_BY(mutex);  // connections that the groups have opened
  // Descriptor -> inode: the connections that Gloo itself waits for.
  std::map<int, std::uint64_t> registered ABSL_GUARDED_BY(mutex);
  // Descriptor -> inode of a connection that has ended.
  std::map<int, std::uint64_t> ended ABSL_GUARDED_BY(mutex);
};

Groups& TheGroups() {
  static auto* groups = new Groups;
  return *groups;
}

// The mutex is held across fork(), so that it is free in a child that makes groups of its own.
void BeforeFork() ABSL_NO_THREAD_SAFETY_ANALYSIS { TheGroups().mutex.Lock(); }
void AfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS { TheGroups().mutex.Unlock(); }

// The next read of this thread, and whether the peer announced its end.
struct Reading {
  void* pair = nullptr;
  void* buffer = nullptr;  // an UnboundBuffer that lives for as long as Pair::read
  bool ended = false;
};
thread_local Reading reading;

// Functions of Gloo's, in the library that was found.
ssize_t (*prepare_read)(void* pair, void* op, const std::shared_ptr<void>* buffer, iovec* part);
void (*signal_pair)(void* pair, std::exception_ptr error);
void (*signal_buffer)(void* buffer, std::exception_ptr error);
void (*register_descriptor)(void* device, int fd, int events, void* handler);
void (*unregister_descriptor)(void* device, int fd, void* handler);

std::uint64_t InodeOf(int fd) {
  struct stat about {};
  return fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode) ? about.st_ino : 0;
}

std::uint16_t PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  if (address.ss_family == AF_INET)
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  if (address.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return 0;
}

bool IsOfAGroup(const Groups& groups, int fd, std::uint64_t inode)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(groups.mutex) {
  if (inode == 0) return false;
  const auto known = groups.registered.find(fd);
  return (known != groups.registered.end() && known->second == inode) ||
         groups.inodes.count(inode) > 0 || groups.ports.count(PortOf(fd)) > 0;
}

// Errors that a TCP connection ends with: the last three when the other host has not answered for
// as long as the kernel sends again.
bool EndsConnection(int error) {
  return error == EPIPE || error == ECONNRESET || error == ECONNABORTED || error == ETIMEDOUT ||
         error == EHOSTUNREACH || error == ENETUNREACH;
}

ssize_t Writev(int fd, const iovec* parts, int count) {
  const ssize_t written = writev(fd, parts, count);
  if (written >= 0 || !EndsConnection(errno)) return written;
  const int error = errno;
  Groups& groups = TheGroups();
  const MutexLock lock(groups.mutex);
  if (!IsOfAGroup(groups, fd, InodeOf(fd))) {
    errno = error;
    return -1;
  }
  shutdown(fd, SHUT_WR);  // nothing may follow what was left out
  ssize_t all = 0;
  for (int i = 0; i < count; ++i) all += static_cast<ssize_t>(parts[i].iov_len);
  return all;
}

ssize_t Recv(int fd, void* data, std::size_t size, int flags) {
  const ssize_t got = recv(fd, data, size, flags);
  if (got > 0 || size == 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return got;
  const int error = errno;
  Groups& groups = TheGroups();
  const MutexLock lock(groups.mutex);
  const std::uint64_t inode = InodeOf(fd);
  const auto known = groups.ended.find(fd);
  const bool told = known != groups.ended.end() && known->second == inode;
  if (told || !IsOfAGroup(groups, fd, inode)) {
    reading.ended = true;
    errno = error;
    return got;
  }
  groups.ended[fd] = inode;
  shutdown(fd, SHUT_WR);
  errno = EAGAIN;
  return -1;
}

// In place of Pair::prepareRead. A NonOwningPtr (gloo/common/memory.h) is a shared_ptr alone.
ssize_t PrepareRead(void* pair, void* op, const std::shared_ptr<void>* buffer, iovec* part) {
  const ssize_t size = prepare_read(pair, op, buffer, part);
  reading = {pair, buffer->get(), false};
  return size;
}

// In place of Pair::signalException, which a thread that was told of the end calls next.
void SignalException(void* pair, std::exception_ptr error) {
  const Reading was = std::exchange(reading, {});
  if (was.ended && was.pair == pair && was.buffer != nullptr) signal_buffer(was.buffer, error);
  signal_pair(pair, std::move(error));
}

// In place of Device::registerDescriptor, which each connection of a group comes to.
void RegisterDescriptor(void* device, int fd, int events, void* handler) {
  {
    Groups& groups = TheGroups();
    const MutexLock lock(groups.mutex);
    groups.registered[fd] = InodeOf(fd);
  }
  register_descriptor(device, fd, events, handler);
}

void UnregisterDescriptor(void* device, int fd, void* handler) {
  {
    Groups& groups = TheGroups();
    const MutexLock lock(groups.mutex);
    groups.registered.erase(fd);
    groups.ended.erase(fd);
  }
  unregister_descriptor(device, fd, handler);
}

#if defined(__x86_64__)
constexpr std::uint32_t kCall = R_X86_64_JUMP_SLOT;
constexpr std::uint32_t kAddress = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr std::uint32_t kCall = R_AARCH64_JUMP_SLOT;
constexpr std::uint32_t kAddress = R_AARCH64_GLOB_DAT;
#else
#error "which relocations are calls here?"
#endif

// Imports of a loaded library, by its dynamic section.
struct Imports {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela) * calls = nullptr;
  std::size_t calls_bytes = 0;
  const ElfW(Rela) * others = nullptr;
  std::size_t others_bytes = 0;
};

Imports ImportsOf(const dl_phdr_info& library) {
  Imports found;
  for (int i = 0; i < library.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = library.dlpi_phdr[i];
    if (part.p_type != PT_DYNAMIC) continue;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(library.dlpi_addr + part.p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      const auto address = entry->d_un.d_ptr;
      if (entry->d_tag == DT_SYMTAB) found.symbols = reinterpret_cast<const ElfW(Sym)*>(address);
      if (entry->d_tag == DT_STRTAB) found.names = reinterpret_cast<const char*>(address);
      if (entry->d_tag == DT_JMPREL) found.calls = reinterpret_cast<const ElfW(Rela)*>(address);
      if (entry->d_tag == DT_PLTRELSZ) found.calls_bytes = entry->d_un.d_val;
      if (entry->d_tag == DT_RELA) found.others = reinterpret_cast<const ElfW(Rela)*>(address);
      if (entry->d_tag == DT_RELASZ) found.others_bytes = entry->d_un.d_val;
    }
  }
  return found;
}

// A function that the library calls through its table of imports.
struct Call {
  const char* name = nullptr;
  void* replacement = nullptr;  // null: only its address is wanted
  void** original = nullptr;  // receives its address; null: not an import of the library's own
  std::vector<void**> slots = {};
};

#define TROUPE_PAIR "_ZN4gloo9transport3tcp4Pair"
#define TROUPE_DEVICE "_ZN4gloo9transport3tcp6Device"
#define TROUPE_ERROR "15signalExceptionENSt15__exception_ptr13exception_ptrE"
std::array<Call, 2> KernelCalls() {
  return {{{"writev", reinterpret_cast<void*>(&Writev)}, {"recv", reinterpret_cast<void*>(&Recv)}}};
}
std::array<Call, 3> ReadingCalls() {
  return {{{TROUPE_PAIR "11prepareReadERNS1_2OpERNS_12NonOwningPtrINS1_13UnboundBufferEEER5iovec",
            reinterpret_cast<void*>(&PrepareRead), reinterpret_cast<void**>(&prepare_read)},
           {TROUPE_PAIR TROUPE_ERROR, reinterpret_cast<void*>(&SignalException),
            reinterpret_cast<void**>(&signal_pair)},
           {"_ZN4gloo9transport3tcp13UnboundBuffer" TROUPE_ERROR, nullptr,
            reinterpret_cast<void**>(&signal_buffer)}}};
}
std::array<Call, 2> DescriptorCalls() {
  return {{{TROUPE_DEVICE "18registerDescriptorEiiPNS1_7HandlerE",
            reinterpret_cast<void*>(&RegisterDescriptor),
            reinterpret_cast<void**>(&register_descriptor)},
           {TROUPE_DEVICE "20unregisterDescriptorEiPNS1_7HandlerE",
            reinterpret_cast<void*>(&UnregisterDescriptor),
            reinterpret_cast<void**>(&unregister_descriptor)}}};
}
#undef TROUPE_PAIR
#undef TROUPE_DEVICE
#undef TROUPE_ERROR

bool Put(void** slot, void* function) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<std::uintptr_t>(slot) & ~(page - 1);
  // The page may have been made read-only after relocation. It stays writable.
  if (mprotect(reinterpret_cast<void*>(start), page, PROT_READ | PROT_WRITE) != 0) return false;
  std::atomic_ref<void*>(*slot).store(function);
  return true;
}

// Finds where the library keeps the addresses of these functions. True: of all of them.
template <std::size_t kCount>
bool Find(const Imports& imports, ElfW(Addr) base, std::array<Call, kCount>& calls) {
  const std::pair<const ElfW(Rela)*, std::size_t> tables[] = {
      {imports.calls, imports.calls_bytes}, {imports.others, imports.others_bytes}};
  std::size_t found = 0;
  for (const auto& [first, bytes] : tables) {
    for (std::size_t i = 0; i < bytes / sizeof(ElfW(Rela)); ++i) {
      const auto index = ELF64_R_SYM(first[i].r_info);
      const auto kind = ELF64_R_TYPE(first[i].r_info);
      if (index == 0 || (kind != kCall && kind != kAddress)) continue;
      const ElfW(Sym)& symbol = imports.symbols[index];
      const char* name = imports.names + symbol.st_name;
      for (Call& each : calls) {
        // Not by string_view: the lengths of 60,000 long names would take most of the time.
        if (std::strcmp(each.name, name) != 0) continue;
        if (each.original != nullptr && symbol.st_value == 0) continue;
        if (each.slots.empty()) ++found;
        each.slots.push_back(reinterpret_cast<void**>(base + first[i].r_offset));
        if (each.original != nullptr)
          *each.original = reinterpret_cast<void*>(base + symbol.st_value);
      }
    }
  }
  return found == kCount;
}

template <std::size_t kCount>
int Replace(const std::array<Call, kCount>& calls) {
  int replaced = 0;
  for (const Call& each : calls) {
    if (each.replacement == nullptr) continue;
    for (void** slot : each.slots) replaced += Put(slot, each.replacement) ? 1 : 0;
  }
  return replaced;
}

// The library whose calls were replaced, here or in the process that this one was forked from, and
// their number.
struct Done {
  ElfW(Addr) base = 0;
  int count = 0;
};

int ReplaceIn(dl_phdr_info* library, std::size_t /*size*/, void* done) {
  const std::string_view path = library->dlpi_name == nullptr ? "" : library->dlpi_name;
  if (path.substr(path.rfind('/') + 1) != kLibrary) return 0;
  auto& [base, count] = *static_cast<Done*>(done);
  if (base == library->dlpi_addr) return 1;
  base = library->dlpi_addr;
  count = 0;
  const Imports imports = ImportsOf(*library);
  if (imports.symbols == nullptr || imports.names == nullptr) return 1;
  auto kernel = KernelCalls();
  auto reads = ReadingCalls();
  auto descriptors = DescriptorCalls();
  Find(imports, library->dlpi_addr, kernel);
  count += Replace(kernel);
  if (Find(imports, library->dlpi_addr, reads)) count += Replace(reads);
  if (Find(imports, library->dlpi_addr, descriptors)) count += Replace(descriptors);
  return 1;
}

int TellOfEnds() {
  static const int installed = pthread_atfork(&BeforeFork, &AfterFork, &AfterFork);
  (void)installed;
  static Done done;  // callers hold Python's lock
  dl_iterate_phdr(ReplaceIn, &done);
  return done.count;
}

std::vector<std::uint64_t> Registered() {
  Groups& groups = TheGroups();
  const MutexLock lock(groups.mutex);
  std::vector<std::uint64_t> inodes;
  for (const auto& [fd, inode] : groups.registered) inodes.push_back(inode);
  return inodes;
}

void SetGroups(const std::vector<std::uint16_t>& ports, const std::vector<std::uint64_t>& inodes) {
  Groups& groups = TheGroups();
  const MutexLock lock(groups.mutex);
  groups.ports = {ports.begin(), ports.end()};
  groups.inodes = {inodes.begin(), inodes.end()};
}

}  // namespace

void bind_gloo_calls(nb::module_& m) {
  m.def("gloo_tells_of_ends", &TellOfEnds,
        "From now on Gloo, of the torch that is loaded, lets go of who sends and who receives when "
        "a connection of its groups ends. Returns how many of its calls were found; 0: none. Takes "
        "milliseconds at its first call in a process and in those that it was forked from.");
  m.def("gloo_sockets", &Registered, "Return the inodes of the connections that Gloo has now.");
  m.def("set_gloo_sockets", &SetGroups, "ports"_a, "inodes"_a,
        "The connections of its groups: accepted at these ports, or opened with these inodes.");
}

}  // namespace troupe::bindings
