// A segment: shared memory of this process's making that others map by its descriptor.
//
// A memfd whose size can never change again and that nobody, this process included, can map
// writable a second time (sealed FUTURE_WRITE, SHRINK, GROW, SEAL): the one writable mapping, made
// before, stays with the maker and is not inherited by forked children. Pages are 2 MiB where the
// kernel gives them (MADV_COLLAPSE, no setting needed), else they are made present before the first
// value.
//
// One on a disk cannot be sealed: its maker's writable descriptor is closed once it is mapped, and
// those that others get are for reading only.
//
// Whose view: the maker's. Create blocks for as long as the kernel takes to clear the pages (0.1 ms
// per MiB, ten times that on a host that backs them for the first time): not in a loop's thread.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace troupe::store {

class Segment {
 public:
  /// Makes one in memory. `bytes`: a multiple of 2 MiB. kTooLarge when the system has no memory,
  /// descriptors or addresses left.
  static StatusOr<Segment> Create(std::uint64_t bytes);
  /// Makes one on a disk: its file has no name, and whoever gets its descriptor can only read. The
  /// kernel keeps in memory what is used of it, and has room for the rest.
  static StatusOr<Segment> CreateOnDisk(const std::string& folder, std::uint64_t bytes);

  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  ~Segment();

  char* data() const { return data_; }
  std::uint64_t bytes() const { return bytes_; }
  /// Valid while this lives; who sends it duplicates it.
  int descriptor() const { return fd_.get(); }

 private:
  Segment(UniqueFd fd, char* data, std::uint64_t bytes);
  void Unmap();

  UniqueFd fd_;
  char* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace troupe::store
