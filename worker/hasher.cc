#include "worker/hasher.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/base/unique_fd.h"
#include "runtime/os/text.h"

namespace troupe::worker {

Hasher::Hasher() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  TROUPE_CHECK(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1,
               "SHA-256");
}

void Hasher::Update(std::string_view bytes) {
  TROUPE_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1, "SHA-256");
}

std::string Hasher::Finish() {
  std::string digest(32, '\0');
  TROUPE_CHECK(EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.data()),
                                  nullptr) == 1,
               "SHA-256");
  return digest;
}

StatusOr<FileDigest> HashFile(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return os::SystemError("open " + path);
  Hasher hasher;
  FileDigest digest;
  std::vector<char> buffer(1u << 20);
  for (;;) {
    const ssize_t got = read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return os::SystemError("read " + path);
    if (got == 0) break;
    hasher.Update(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
    digest.size += static_cast<std::uint64_t>(got);
  }
  digest.sha256 = hasher.Finish();
  return digest;
}

}  // namespace troupe::worker
