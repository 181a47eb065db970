// Mapping a file at an address that is a multiple of 2 MiB, which huge pages need.
#pragma once

#include <cstdint>

namespace troupe::store {

/// mmap of the file's first `bytes` with the given protection and flags; nullptr and errno on
/// failure.
char* MapAligned(int fd, std::uint64_t bytes, int protection, int flags);

}  // namespace troupe::store
