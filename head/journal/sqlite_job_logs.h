// The ends of jobs' logs on the head's disk: the latest kJobLogsMax of them, kJobLogsBytesMax in
// all, for the time of the retention.
//
// View: one head. Blocking; used from one thread at a time. WAL, synchronous=NORMAL: what was
// written outlives the process, and after a loss of power the latest may be missing. A database
// that is damaged is put aside, as the archive is. For people with sqlite3:
//   logs(number, launch BLOB, epoch, offset, lived_us, text BLOB)
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "head/core/machine/io.h"
#include "runtime/base/status.h"

struct sqlite3;

namespace troupe::head {

inline constexpr std::size_t kJobLogsMax = 10'000;
inline constexpr std::uint64_t kJobLogsBytesMax = 1u << 30;

class SqliteJobLogs {
 public:
  struct Limits {
    std::size_t logs_max = kJobLogsMax;
    std::uint64_t bytes_max = kJobLogsBytesMax;
  };
  /// Opens or makes job_logs.db in `folder`.
  static StatusOr<std::unique_ptr<SqliteJobLogs>> Open(const std::string& folder);
  static StatusOr<std::unique_ptr<SqliteJobLogs>> Open(const std::string& folder, Limits limits);
  ~SqliteJobLogs();
  SqliteJobLogs(const SqliteJobLogs&) = delete;
  SqliteJobLogs& operator=(const SqliteJobLogs&) = delete;

  /// Replaces what it has of the same launch (KL-2), and removes the oldest beyond the limits.
  Status Write(const KeptLog& log);
  /// nullopt: there is none of it. `epoch` 0: whichever there is.
  StatusOr<std::optional<KeptLog>> Read(const LaunchId& launch, std::uint64_t epoch);
  /// Removes what came before that lived time.
  Status Forget(std::uint64_t until_us);

 private:
  SqliteJobLogs(std::string folder, Limits limits);
  Status OpenFile();
  Status Insert(const KeptLog& log);
  Status RemoveOldest();
  Status Count();
  Status Execute(const std::string& sql);
  Status Error(const std::string& doing) const;

  const std::string folder_;
  const Limits limits_;
  sqlite3* db_ = nullptr;
  std::size_t logs_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace troupe::head
