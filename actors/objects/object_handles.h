// Handles of objects of this process's store, let go of together. A value; needs no lock and no
// GIL.
#pragma once

#include <utility>
#include <vector>

#include "runtime/store/core/object_id.h"

namespace troupe::actors {

class Handles {
 public:
  Handles() = default;
  Handles(Handles&& other) noexcept : ids_(std::exchange(other.ids_, {})) {}
  Handles& operator=(Handles&& other) noexcept {
    std::swap(ids_, other.ids_);
    return *this;
  }
  ~Handles() { Clear(); }

  bool empty() const { return ids_.empty(); }
  const std::vector<store::ObjectId>& ids() const { return ids_; }
  /// Takes over one handle of `id`.
  void Add(const store::ObjectId& id) { ids_.push_back(id); }
  void Add(Handles more) {
    ids_.insert(ids_.end(), more.ids_.begin(), more.ids_.end());
    more.ids_.clear();
  }
  void Clear();

 private:
  std::vector<store::ObjectId> ids_;
};

}  // namespace troupe::actors
