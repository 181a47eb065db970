// The archive on a thread of its own: what the reducer hands out is written and read there, and
// answered on the head's loop.
//
// View: one head process. Serve() on the head's loop; answers are posted to it. What is waiting at
// the end is dropped: nothing leaves the reducer's memory before its record was written.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "head/core/machine/io.h"
#include "head/journal/sqlite_archive.h"
#include "runtime/async/loop_thread.h"

namespace troupe::head {

/// Reads the archive in this folder on the caller's thread, by a connection of its own, which is
/// opened with the first call. For one thread.
ReadArchive ReaderOfArchive(const SqliteOptions& options);

/// Returns the submissions of the launches in the archive that ended within `repeats_us` before the
/// latest one; logs an error of the archive, and returns none.
std::vector<RequestId> MovedSince(SqliteArchive& archive, std::uint64_t repeats_us);

class ArchiveLink {
 public:
  using Answer = std::function<void(const Input&)>;

  /// `loop` must outlive it.
  ArchiveLink(async::Executor loop, std::unique_ptr<SqliteArchive> archive)
      : loop_(std::move(loop)), archive_(std::move(archive)) {}

  /// Does what these effects ask of the archive; `answer` gets the Archived and Recalled of them.
  void Serve(Effects& effects, const Answer& answer);

 private:
  void Write(const std::vector<EndedRecord>& records, const Answer& answer);
  void Read(const Recall& recall, const Answer& answer);
  void Forget(std::uint64_t until_us);

  const async::Executor loop_;
  const std::unique_ptr<SqliteArchive> archive_;
  async::LoopThread thread_{"head-archive"};  // last: it uses the archive
};

}  // namespace troupe::head
