// Fuzzes the reader of a TLS server name: bytes of strangers, read before anything is known of
// them. What is found must lie within the input, and more bytes must never turn "not TLS" into a
// name.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "runtime/net/client_hello.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using State = troupe::net::ServerNamePeek::State;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto whole = troupe::net::ParseClientHello(bytes);
  if (whole.state != State::kName && !whole.name.empty()) std::abort();
  if (whole.name.size() > size) std::abort();
  const auto half = troupe::net::ParseClientHello(bytes.substr(0, size / 2));
  if (half.state == State::kNotTls && whole.state == State::kName) std::abort();
  if (half.state == State::kName && half.name != whole.name) std::abort();
  return 0;
}
