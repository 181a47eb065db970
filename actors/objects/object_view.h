// An object that is being read: its memory stays as it is while this lives. Move-only.
//
// Made by ObjectStore::View; may be used and destroyed on any thread, without the store's lock. In
// a forked child what is mapped stays readable, and nobody is told of the end.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "actors/objects/segment_map.h"
#include "runtime/base/status.h"
#include "runtime/store/core/object_id.h"
#include "runtime/store/reading.h"

namespace troupe::actors {

class ObjectStore;

class ObjectView {
 public:
  ObjectView() = default;
  ObjectView(ObjectView&& other) noexcept { *this = std::move(other); }
  ObjectView& operator=(ObjectView&& other) noexcept;
  ~ObjectView();

  std::string_view bytes() const { return bytes_; }
  /// Maps what bytes() shows once more, for the caller alone, who may write to it: what is written
  /// stays there.
  StatusOr<store::Reading> Private(char** at) const;

 private:
  friend class ObjectStore;
  ObjectStore* store_ = nullptr;
  std::uint32_t generation_ = 0;
  store::ObjectId id_;
  store::Location location_;
  std::shared_ptr<ObjectMapping> mapping_;
  std::string_view bytes_;
};

}  // namespace troupe::actors
