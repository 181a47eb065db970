// The files processes write their output to, and how they are read again.
//
// View: one node; on the worker's loop; blocking for a read or write of at most 1 MiB. A process's
// stdout and stderr are these files, opened for appending: nothing copies, nothing is lost when the
// worker ends. A file over its cap loses its older half (Trim); offsets go on counting what was
// written, so that a reader learns how much it missed. Files are opened strictly beneath the log
// folder (openat2): a name from outside never leads out.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "worker/core/effects.h"
#include "worker/core/log_times.h"
#include "worker/log_packs.h"

namespace troupe::worker {

/// Behind the name of a file: how many bytes were cut off at its front.
inline constexpr char kDroppedSuffix[] = ".dropped";

struct LogPiece {
  std::uint64_t offset = 0;  // place of the first byte of `text`
  std::uint64_t next = 0;  // place to go on
  std::uint64_t dropped = 0;  // bytes between what was asked for and `offset`
  std::string text;
};

class LogFiles {
 public:
  /// `folder` is made if need be.
  static StatusOr<LogFiles> Open(const std::string& folder, std::uint64_t bytes_max_per_file);

  struct Pair {
    UniqueFd out;
    UniqueFd err;
  };
  StatusOr<Pair> Create(const LogPlace& place);

  /// At most `bytes_max` (and 1 MiB) from `offset`; empty at the end. kNotFound: no such file.
  StatusOr<LogPiece> Read(const std::string& file, std::uint64_t offset,
                          std::uint32_t bytes_max) const;
  /// At most the last `bytes_max` (and 1 MiB), from the beginning of a line on.
  StatusOr<LogPiece> End(const std::string& file, std::uint32_t bytes_max) const;
  /// Returns the begin of the first line that may have been written after that time
  /// (core/log_times.h).
  StatusOr<std::uint64_t> Since(const std::string& file, std::uint64_t since_us) const;
  /// Files of ended folders, many in one (log_keeper.h); Read and NewestEpoch know them.
  LogPacks& packs() { return packs_; }

  /// The last lines of a file (core/log_tail.h).
  std::string Tail(const std::string& file) const;
  /// Notes how long the file is, and halves it when it is over the cap.
  void Trim(const std::string& file, std::uint64_t now_us);
  /// The epoch to read when none is named: the highest there is; 0 when there is none.
  std::uint64_t NewestEpoch(const std::string& launch) const;

  /// Takes a top-level folder out of sight and returns the path to remove (os::RemoveTree). Nobody
  /// may write there any more; who reads a file of it goes on with what is open.
  StatusOr<std::string> Detach(const std::string& folder);

  std::string Path(const std::string& file) const { return folder_ + "/" + file; }
  const std::string& folder() const { return folder_; }

 private:
  LogFiles(std::string folder, UniqueFd directory, std::uint64_t bytes_max);
  std::uint64_t DroppedOf(const std::string& file) const;
  /// How many bytes were written to it.
  StatusOr<std::uint64_t> LengthOf(const std::string& file) const;
  /// A piece of a log whose bytes lie from `begin` to `end`, and lost `dropped` at its front.
  static LogPiece Piece(int fd, std::uint64_t begin, std::uint64_t end, std::uint64_t dropped,
                        std::uint64_t offset, std::uint32_t bytes_max);
  Status TakeOutOfPack(const std::string& file);
  void NoteDropped(const std::string& file, std::uint64_t total);

  std::string folder_;
  UniqueFd directory_;
  std::uint64_t bytes_max_;
  std::map<std::string, std::uint64_t> dropped_;  // bytes cut off at the front, per file
  LogPacks packs_;
  LogTimes times_;
};

/// A top-level folder of logs: a launch's or an actor's.
struct LogFolder {
  std::string name;
  std::uint64_t changed_us = 0;  // the newest change of a file in it
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;  // and folders
};
/// Lists the contents of `folder`, packs excepted; blocking for as long as looking at every file
/// takes. Folders that an earlier life detached and had no time to remove are removed.
std::vector<LogFolder> ListLogFolders(const std::string& folder);
/// Looks at the files in and beneath `path`; blocking.
LogFolder MeasureLogFolder(const std::string& path);

/// "<folder>/<stem>.out".
std::string LogFile(const LogPlace& place, bool err);

}  // namespace troupe::worker
