#include "runtime/async/os_random.h"

#include <errno.h>
#include <sys/random.h>

#include <cstring>

#include "runtime/base/check.h"

namespace troupe::async {
namespace {

void Fill(void* into, std::size_t size) {
  auto* bytes = static_cast<char*>(into);
  std::size_t done = 0;
  while (done < size) {
    const ssize_t n = getrandom(bytes + done, size - done, 0);
    if (n < 0 && errno == EINTR) continue;
    TROUPE_CHECK(n > 0, std::string("getrandom: ") + std::strerror(errno));
    done += static_cast<std::size_t>(n);
  }
}

}  // namespace

std::uint64_t OsRandom::Next() {
  std::uint64_t bits = 0;
  Fill(&bits, sizeof bits);
  return bits;
}

std::string RandomBytes(std::size_t size) {
  std::string bytes(size, '\0');
  Fill(bytes.data(), size);
  return bytes;
}

}  // namespace troupe::async
