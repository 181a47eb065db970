// Values under names: (scope, key) -> bytes with a version that grows with every write.
#pragma once

#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

/// The limits of one entry; more is refused by name.
inline constexpr std::size_t kKeyBytesMax = 1024;
inline constexpr std::size_t kValueBytesMax = 1u << 20;
inline constexpr std::size_t kValuesMax = 100'000;
inline constexpr std::size_t kAllValuesBytesMax = 256u << 20;  // keys included

void OnKvPut(Turn& turn, const Request& request, const wire::KvPut& message,
             const std::string& value);
void OnKvGet(Turn& turn, const Request& request, const wire::KvGet& message);
void OnKvDelete(Turn& turn, const Request& request, const wire::KvDelete& message);
void OnKvList(Turn& turn, const Request& request, const wire::KvList& message);

}  // namespace troupe::head
