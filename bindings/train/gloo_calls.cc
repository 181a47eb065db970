#include "bindings/train/gloo_calls.h"

#include <elf.h>
#include <link.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <vector>

// Gloo tells whoever waits for a receive that its connection has ended, and not who waits for a
// send of more than the kernel takes at once (`Pair::signalException` in gloo/transport/tcp/pair.cc
// goes through the buffers of its tables, and an unbound buffer that waits to be written is in none
// of them): that thread waits for the group's timeout, which is half an hour.
// A receive of which a part has come is in none of them either (`rx_`), and still waits: completing
// it would pass off as a message what is only a part of one.
//
// So Gloo's two calls of the kernel are answered differently, on sockets of its groups alone and
// only once a connection has ended:
//   writev  what cannot be written any more counts as written, as what lies in the kernel's buffer
//           when the other side dies does. Whoever sends goes on, to its next operation.
//   recv    the end is told at the second time it is asked for. At the first, writing ends too, so
//           that the thread of Gloo's that asks, which writes what waits before it reads, lets go
//           of all who send before it tells who receive.
namespace nb = nanobind;
using namespace nb::literals;

namespace troupe::bindings {
namespace {

constexpr std::string_view kLibrary = "libtorch_cpu.so";

// For the life of the process: torch's library calls in until its end, on any thread.
struct Groups {
  std::mutex mutex;
  std::set<std::uint16_t> ports;   // on which groups listen: what was accepted there has the port
  std::set<std::uint64_t> inodes;  // of connections that they have opened
  std::map<int, std::uint64_t> ended;  // descriptor -> inode of a connection that has ended
};

Groups& TheGroups() {
  static auto* groups = new Groups;
  return *groups;
}

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

bool IsOfAGroup(const Groups& groups, int fd, std::uint64_t inode) {
  return inode != 0 && (groups.inodes.count(inode) > 0 || groups.ports.count(PortOf(fd)) > 0);
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
  const std::lock_guard lock(groups.mutex);
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
  const std::lock_guard lock(groups.mutex);
  const std::uint64_t inode = InodeOf(fd);
  const auto known = groups.ended.find(fd);
  const bool told = known != groups.ended.end() && known->second == inode;
  if (told || !IsOfAGroup(groups, fd, inode)) {
    errno = error;
    return got;
  }
  groups.ended[fd] = inode;
  shutdown(fd, SHUT_WR);
  errno = EAGAIN;
  return -1;
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

// What a loaded library imports, by its dynamic section.
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

bool Put(void** slot, void* function) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<std::uintptr_t>(slot) & ~(page - 1);
  // It may be among what was made read-only after relocation. It stays writable.
  if (mprotect(reinterpret_cast<void*>(start), page, PROT_READ | PROT_WRITE) != 0) return false;
  std::atomic_ref<void*>(*slot).store(function);
  return true;
}

int Replace(const Imports& imports, const ElfW(Rela) * first, std::size_t bytes, ElfW(Addr) base) {
  int replaced = 0;
  for (std::size_t i = 0; i < bytes / sizeof(ElfW(Rela)); ++i) {
    const auto symbol = ELF64_R_SYM(first[i].r_info);
    const auto kind = ELF64_R_TYPE(first[i].r_info);
    if (symbol == 0 || (kind != kCall && kind != kAddress)) continue;
    const char* name = imports.names + imports.symbols[symbol].st_name;
    void* function = nullptr;
    if (std::strcmp(name, "writev") == 0) function = reinterpret_cast<void*>(&Writev);
    if (std::strcmp(name, "recv") == 0) function = reinterpret_cast<void*>(&Recv);
    if (function == nullptr) continue;
    replaced += Put(reinterpret_cast<void**>(base + first[i].r_offset), function) ? 1 : 0;
  }
  return replaced;
}

int ReplaceIn(dl_phdr_info* library, std::size_t /*size*/, void* replaced) {
  const std::string_view path = library->dlpi_name == nullptr ? "" : library->dlpi_name;
  if (path.substr(path.rfind('/') + 1) != kLibrary) return 0;
  const Imports imports = ImportsOf(*library);
  if (imports.symbols == nullptr || imports.names == nullptr) return 1;
  int& count = *static_cast<int*>(replaced);
  count += Replace(imports, imports.calls, imports.calls_bytes, library->dlpi_addr);
  count += Replace(imports, imports.others, imports.others_bytes, library->dlpi_addr);
  return 1;
}

int TellOfEnds() {
  int replaced = 0;
  dl_iterate_phdr(ReplaceIn, &replaced);
  return replaced;
}

void SetGroups(const std::vector<std::uint16_t>& ports, const std::vector<std::uint64_t>& inodes) {
  Groups& groups = TheGroups();
  const std::lock_guard lock(groups.mutex);
  groups.ports = {ports.begin(), ports.end()};
  groups.inodes = {inodes.begin(), inodes.end()};
}

}  // namespace

void bind_gloo_calls(nb::module_& m) {
  m.def("gloo_tells_of_ends", &TellOfEnds,
        "From now on Gloo, of the torch that is loaded, lets go of who sends when a connection of "
        "its groups ends. Returns how many of its calls were found; 0: this torch has none.");
  m.def("set_gloo_sockets", &SetGroups, "ports"_a, "inodes"_a,
        "The connections of its groups: accepted at these ports, or opened with these inodes.");
}

}  // namespace troupe::bindings
