// Looks at a SQLite write-ahead log before SQLite does.
//
// SQLite's recovery stops at the first frame whose checksum is wrong and says nothing: a flipped
// bit silently drops every later transaction, and integrity_check is content (decision 27). A torn
// tail is normal after a crash, and so are frames without a commit behind it; valid frames of the
// same generation that commit are not: acknowledged events would be lost. Each frame is checked
// with its predecessor's stored checksum as the seed, so that frames behind a bad one can be told
// to be good. Blocking (reads the file once).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace troupe::head {

struct WalVerdict {
  std::uint64_t good_frames = 0;  // before the first bad one
  std::uint64_t good_bytes = 0;   // the file's, up to there
  std::uint64_t stranded = 0;     // good frames behind a bad one, up to the last that commits
  bool sound() const { return stranded == 0; }
};

/// Pure: the verdict on a log's bytes. Too short for a header, or none of ours: no frames.
WalVerdict ScanWal(std::string_view bytes);
/// The verdict on a log file; no file: no frames.
StatusOr<WalVerdict> ScanWalFile(const std::string& path);

}  // namespace troupe::head
