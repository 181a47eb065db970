// The known state of an object's value. A value of shared bytes: copying one is cheap.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/store/core/object_id.h"

namespace troupe::store {

enum class ValueKind : std::uint8_t {
  kPending = 0,   // the call that makes it is under way
  kInline = 1,    // `bytes`
  kSegments = 2,  // at each of `locations`
  kError = 3,     // `bytes` is what its method raised: an error is a value
  kLost = 4,      // the last location is gone; `bytes` says how
};

struct Value {
  ValueKind kind = ValueKind::kPending;
  std::shared_ptr<const std::string> bytes;
  std::vector<Location> locations;

  bool Ended() const { return kind != ValueKind::kPending; }
  static Value Inline(std::string bytes) { return Of(ValueKind::kInline, std::move(bytes)); }
  static Value Error(std::string bytes) { return Of(ValueKind::kError, std::move(bytes)); }
  static Value Lost(std::string why) { return Of(ValueKind::kLost, std::move(why)); }
  static Value At(const Location& location) {
    Value value;
    value.kind = ValueKind::kSegments;
    value.locations.push_back(location);
    return value;
  }

 private:
  static Value Of(ValueKind kind, std::string bytes) {
    Value value;
    value.kind = kind;
    value.bytes = std::make_shared<const std::string>(std::move(bytes));
    return value;
  }
};

}  // namespace troupe::store
