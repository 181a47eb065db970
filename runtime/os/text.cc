#include "runtime/os/text.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/unique_fd.h"

namespace troupe::os {

Status SystemError(const std::string& what) {
  return MakeError(ErrorCode::kInternal, what + ": " + std::strerror(errno));
}

std::optional<std::string> ReadText(const std::string& path) {
  constexpr std::size_t kTextMax = 1u << 20;
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return std::nullopt;
  std::string text;
  char buffer[4096];
  while (text.size() < kTextMax) {
    const ssize_t got = read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace troupe::os
