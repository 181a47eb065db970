// Fuzzes what a peer's bytes meet first: the frame reader and the codec behind it. Whatever decodes
// must encode and decode to the same message again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "runtime/wire/frame.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace wire = troupe::wire;
  wire::FrameReader reader;
  reader.Feed(std::string_view(reinterpret_cast<const char*>(data), size));
  while (auto next = reader.Next()) {
    if (!next->ok()) break;
    const auto frame = wire::EncodeFrame(**next);
    if (!frame.ok()) continue;
    const auto again = wire::DecodeFrame(*frame);
    if (!again.ok() || !(*again == **next)) std::abort();
  }
  return 0;
}
