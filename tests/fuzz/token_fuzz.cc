// Fuzzes what a user may paste: tokens and addresses. A text that parses must be written back to a
// text that parses to the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "runtime/net/address.h"
#include "runtime/net/certificate.h"
#include "runtime/net/token.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace net = troupe::net;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto token = net::ParseToken(troupe::Secret(text));
  if (token.ok()) {
    const auto again = net::ParseToken(net::FormatToken(*token));
    if (!again.ok() || again->id != token->id || again->secret.Reveal() != token->secret.Reveal())
      std::abort();
  }
  const auto address = net::ParseAddress(text);
  if (address.ok()) {
    const auto again = net::ParseAddress(address->Text());
    if (!again.ok() || !(*again == *address)) std::abort();
  }
  const auto identity = net::ParseIdentity(text);
  if (identity.ok() && !(*net::ParseIdentity(net::FormatIdentity(*identity)) == *identity))
    std::abort();
  return 0;
}
