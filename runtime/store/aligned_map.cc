#include "runtime/store/aligned_map.h"

#include <sys/mman.h>

#include <cerrno>

#include "runtime/store/core/slots.h"

namespace troupe::store {

char* MapAligned(int fd, std::uint64_t bytes, int protection, int flags) {
  const std::uint64_t reserved = bytes + kHugePage;
  void* room =
      mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  char* begin = static_cast<char*>(room);
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  char* aligned = begin + (kHugePage - address % kHugePage) % kHugePage;
  void* mapped = mmap(aligned, bytes, protection, flags | MAP_FIXED, fd, 0);
  if (mapped == MAP_FAILED) {
    const int error = errno;
    munmap(room, reserved);
    errno = error;
    return nullptr;
  }
  const auto before = static_cast<std::uint64_t>(aligned - begin);
  const std::uint64_t whole = (bytes + 4095) / 4096 * 4096;
  if (before != 0) munmap(begin, before);
  if (reserved - before > whole) munmap(aligned + whole, reserved - before - whole);
  return aligned;
}

}  // namespace troupe::store
