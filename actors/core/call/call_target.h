// Requests of a call besides its method. It is part of the name in the call's shape, so that it
// travels once per connection and costs a call nothing. Pure.
//
//   step                        one answer
//   step;returns=2              the two values that step gives, each an answer of its own
//   step;returns=*              as many as it gives, each when it is there
//   step;returns=*;ahead=16     the same, at most 16 that the caller has not taken yet
//   step;tensors=1              tensors in what it gives stay in the actor (docs/guides/tensors.md)
//   step;returns=2;group=io     run in the concurrency group "io"; to the end of the name
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace troupe::actors {

struct CallTarget {
  std::string_view method;  // into the name
  std::uint32_t returns = 1;
  bool streams = false;     // then `returns` means nothing
  std::uint32_t ahead = 0;  // most items of a stream not taken yet; 0: the limits'
  bool keeps_tensors = false;
  std::string_view group;  // empty: the method's own
};

/// nullopt: `name` is none of the above.
std::optional<CallTarget> ParseCallTarget(std::string_view name);

}  // namespace troupe::actors
