// A segment: shared memory of this process's making that others map by its descriptor.
//
// A memfd whose size can never change again and that nobody, this process included, can map
// writable a second time (sealed FUTURE_WRITE, SHRINK, GROW, SEAL): the one writable mapping, made
// before, stays with the maker and is not inherited by forked children. Pages are 2 MiB where the
// kernel gives them (MADV_COLLAPSE, no setting needed), else they are made present before the first
// value.
//
// Whose view: the maker's. Create blocks for as long as the kernel takes to clear the pages (0.1 ms
// per MiB, ten times that on a host that backs them for the first time): not in a loop's thread.
#pragma once

#include <cstdint>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace troupe::store {

class Segment {
 public:
  /// `bytes`: a multiple of 2 MiB. kTooLarge when the system has no memory, descriptors or
  /// addresses left.
  static StatusOr<Segment> Create(std::uint64_t bytes);

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
