// Fuzzes what reads HTTP requests, with the bytes at once and in two parts: the same requests come
// out, and no bytes end the head.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "head/http/request_reader.h"

namespace {

using troupe::head::RequestReader;

std::string Read(std::string_view first, std::string_view second) {
  RequestReader reader;
  std::string seen;
  RequestReader::Step step = reader.Feed(first);
  bool more = true;
  for (int i = 0; i < 64; ++i) {
    if (step == RequestReader::Step::kBad) return seen + "bad";
    if (step == RequestReader::Step::kMore) {
      if (!more) return seen;
      more = false;
      step = reader.Feed(second);
      continue;
    }
    seen += reader.request().method + " " + reader.request().path + "\n";
    step = reader.Feed({});
  }
  return "";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.size() > troupe::head::kHttpHeadBytesMax) return 0;
  const std::size_t cut = bytes.empty() ? 0 : static_cast<unsigned char>(bytes[0]) % bytes.size();
  if (Read(bytes, "") != Read(bytes.substr(0, cut), bytes.substr(cut))) std::abort();
  return 0;
}
