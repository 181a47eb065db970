#include "actors/objects/object_memory.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "runtime/base/log.h"
#include "runtime/os/memory.h"
#include "runtime/store/spill_file.h"

namespace troupe::actors {
namespace {

constexpr std::uint64_t kKeptFreeMax = 4ull << 30;

/// Memory that objects may take: all of the system's but a tenth, 4 GiB at most, which is left to
/// others.
std::uint64_t MemoryLeft() {
  const os::Memory memory = os::ReadMemory();
  if (memory.total_bytes == 0) return UINT64_MAX;  // nothing is known of it
  const std::uint64_t kept = std::min(memory.total_bytes / 10, kKeptFreeMax);
  return memory.available_bytes > kept ? memory.available_bytes - kept : 0;
}

}  // namespace

store::PoolOptions ObjectMemoryOptions() {
  store::PoolOptions options;
  options.memory_left = &MemoryLeft;
  if (const char* given = std::getenv("TROUPE_OBJECT_STORE_MEMORY");
      given != nullptr && *given != '\0') {
    const std::string_view text = given;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), options.bytes_max);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size()) {
      options.bytes_max = 0;
      Log(LogLevel::kWarning, "TROUPE_OBJECT_STORE_MEMORY is no number of bytes: it is ignored",
          {{"value", text}});
    }
  }
  const char* folder = std::getenv("TROUPE_OBJECT_SPILLING_DIRECTORY");
  options.spill_folder =
      folder == nullptr || *folder == '\0' ? store::DefaultSpillFolder() : folder;
  if (options.spill_folder == "none") options.spill_folder.clear();
  return options;
}

}  // namespace troupe::actors
