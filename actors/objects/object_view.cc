#include "actors/objects/object_view.h"

#include <utility>

#include "actors/net/fork_guard.h"
#include "actors/objects/object_store.h"

namespace troupe::actors {

ObjectView& ObjectView::operator=(ObjectView&& other) noexcept {
  std::swap(store_, other.store_);
  std::swap(generation_, other.generation_);
  std::swap(id_, other.id_);
  std::swap(location_, other.location_);
  std::swap(mapping_, other.mapping_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

ObjectView::~ObjectView() {
  // Objects that a forked child inherited are inert, their locks included.
  if (store_ != nullptr && generation_ == ForkGuard::generation()) store_->DropView(id_);
}

StatusOr<store::Reading> ObjectView::Private(char** at) const {
  TROUPE_ASSIGN(store::Reading reading,
                store::Reading::Private(mapping_->descriptor.get(), mapping_->bytes));
  TROUPE_ASSIGN(*at, reading.At(location_));
  return reading;
}

}  // namespace troupe::actors
