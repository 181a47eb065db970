// SHA-256 of bytes that come in pieces. Movable; one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

struct evp_md_ctx_st;

namespace troupe::worker {

class Hasher {
 public:
  Hasher();
  void Update(std::string_view bytes);
  /// 32 bytes. The hasher is spent.
  std::string Finish();

 private:
  std::shared_ptr<evp_md_ctx_st> context_;
};

/// The digest and size of a file; blocking for as long as reading it takes.
struct FileDigest {
  std::string sha256;
  std::uint64_t size = 0;
};
StatusOr<FileDigest> HashFile(const std::string& path);

}  // namespace troupe::worker
