#include "runtime/store/segment.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/store/aligned_map.h"
#include "runtime/store/core/slots.h"
#include "runtime/store/spill_file.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace troupe::store {
namespace {

Status Refused(const char* what, std::uint64_t bytes) {
  const int error = errno;
  std::string text = "shared memory of " + std::to_string(bytes >> 20) +
                     " MiB for objects: " + what + ": " + std::strerror(error);
  if (error == EMFILE || error == ENFILE) text += "\n  raise the limit of open files (ulimit -n)";
  if (error == ENOMEM) text += "\n  drop references, or give the process or its cgroup more memory";
  return MakeError(ErrorCode::kTooLarge, text);
}

// False: the kernel had no memory for it.
bool MakePresent(char* data, std::uint64_t bytes) {
  for (std::uint64_t at = 0; at < bytes; at += kHugePage) {
    // A huge page is made around a page that is there. Where that is not possible (an older kernel,
    // no 2 MiB in a piece) the small pages below do.
    volatile char* first = data + at;
    if (madvise(data + at, 4096, MADV_POPULATE_WRITE) != 0 && errno == ENOMEM) return false;
    *first = 0;
    madvise(data + at, kHugePage, MADV_COLLAPSE);
  }
  if (madvise(data, bytes, MADV_POPULATE_WRITE) == 0) return true;
  return errno == EINVAL;  // a kernel before 5.14: the first value's copy faults its pages in
}

}  // namespace

Segment::Segment(UniqueFd fd, char* data, std::uint64_t bytes)
    : fd_(std::move(fd)), data_(data), bytes_(bytes) {}

Segment::Segment(Segment&& other) noexcept
    : fd_(std::move(other.fd_)), data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  if (this != &other) {
    Unmap();
    fd_ = std::move(other.fd_);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = other.bytes_;
  }
  return *this;
}

Segment::~Segment() { Unmap(); }

void Segment::Unmap() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

StatusOr<Segment> Segment::Create(std::uint64_t bytes) {
  UniqueFd fd(memfd_create("troupe-objects", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return Refused("memfd_create", bytes);
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return Refused("ftruncate", bytes);
  char* data = MapAligned(fd.get(), bytes, PROT_READ | PROT_WRITE, MAP_SHARED);
  if (data == nullptr) return Refused("mmap", bytes);
  Segment segment(std::move(fd), data, bytes);
  const int seals = F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (fcntl(segment.descriptor(), F_ADD_SEALS, seals) != 0) return Refused("sealing", bytes);
  if (madvise(data, bytes, MADV_DONTFORK) != 0) return Refused("MADV_DONTFORK", bytes);
  if (!MakePresent(data, bytes)) return Refused("making its pages present", bytes);
  return segment;
}

StatusOr<Segment> Segment::CreateOnDisk(const std::string& folder, std::uint64_t bytes) {
  TROUPE_ASSIGN(const UniqueFd file, MakeSpillFile(folder, bytes));
  TROUPE_ASSIGN(UniqueFd reading, ReadingOf(file));
  char* data = MapAligned(file.get(), bytes, PROT_READ | PROT_WRITE, MAP_SHARED);
  if (data == nullptr) return Refused("mmap", bytes);
  Segment segment(std::move(reading), data, bytes);
  if (madvise(data, bytes, MADV_DONTFORK) != 0) return Refused("MADV_DONTFORK", bytes);
  return segment;
}

}  // namespace troupe::store
