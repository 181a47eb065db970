#include "runtime/store/reading.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/store/aligned_map.h"
#include "runtime/store/slot_header.h"
#include "runtime/store/spill_file.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace troupe::store {
namespace {

constexpr int kSealsNeeded = F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK;

Status NotASegment(const std::string& why) {
  return MakeError(ErrorCode::kInvalid,
                   "a descriptor that came as an object's memory is refused: " + why);
}

}  // namespace

StatusOr<Reading> Reading::ReadOnly(int fd, std::uint64_t bytes) {
  return Map(fd, bytes, PROT_READ, MAP_SHARED);
}

StatusOr<Reading> Reading::Private(int fd, std::uint64_t bytes) {
  return Map(fd, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE);
}

StatusOr<Reading> Reading::Map(int fd, std::uint64_t bytes, int protection, int flags) {
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 && !IsSpillFile(fd))
    return NotASegment("it is neither shared memory nor a file for objects");
  if (seals >= 0 && (seals & kSealsNeeded) != kSealsNeeded) return NotASegment("it is not sealed");
  struct stat found{};
  if (fstat(fd, &found) != 0) return NotASegment(std::strerror(errno));
  if (bytes == 0 || static_cast<std::uint64_t>(found.st_size) < bytes) {
    return NotASegment("it has " + std::to_string(found.st_size) + " bytes, not " +
                       std::to_string(bytes));
  }
  char* data = MapAligned(fd, bytes, protection, flags);
  if (data == nullptr) {
    return MakeError(ErrorCode::kTooLarge,
                     "mapping " + std::to_string(bytes >> 20) +
                         " MiB of an object's memory: " + std::strerror(errno));
  }
  return Reading(data, bytes);
}

Reading::Reading(Reading&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

Reading& Reading::operator=(Reading&& other) noexcept {
  if (this != &other) {
    if (data_ != nullptr) munmap(data_, bytes_);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = other.bytes_;
  }
  return *this;
}

Reading::~Reading() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

StatusOr<char*> Reading::At(const Location& location) const {
  const bool inside = location.offset >= kSlotHeaderBytes && location.offset <= bytes_ &&
                      location.bytes <= bytes_ - location.offset &&
                      location.offset % kSlotHeaderBytes == 0;
  if (!inside) {
    return MakeError(ErrorCode::kInvalid, "an object's location lies outside of its memory");
  }
  SlotHeader header;
  std::memcpy(&header, data_ + location.offset - kSlotHeaderBytes, sizeof(header));
  if (header.magic != kSlotMagic || header.generation != location.generation ||
      header.bytes != location.bytes) {
    return MakeError(ErrorCode::kFenced,
                     "the memory of the object holds another one by now: it is lost");
  }
  return data_ + location.offset;
}

}  // namespace troupe::store
