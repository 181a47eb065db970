// Logs of many ended launches and actors in one file: a pack, `logs/.pack-<n>`.
//
// View: one node; on the worker's loop but for WritePack and FindPacks, which block for as long as
// their files are large. A pack is written whole under another name, then renamed, and never
// changed; its file goes when no folder in it is kept. It begins with kMagic and has, file after
// file: "<bytes> <dropped> <ended> <length of the name>\n", the name, the bytes. The index of all
// packs is in memory, made at the start.
//
//   LP-1  A file is read from its pack as it was read before.
//   LP-2  A pack that was not written whole is none: its files are still where they were.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status.h"

namespace troupe::worker {

/// An entry of a pack under the name of a file, "<folder>/<rest>".
struct PackedFile {
  std::string name;
  std::uint64_t at = 0;  // begin of its bytes in the pack
  std::uint64_t bytes = 0;
  std::uint64_t dropped = 0;  // bytes that were cut off at its front
};
struct PackedFolder {
  std::string name;
  std::uint64_t ended_us = 0;
  std::vector<PackedFile> files;

  std::uint64_t bytes() const;
};
struct Pack {
  std::string path;
  std::uint64_t number = 0;
  std::vector<PackedFolder> folders;
};

/// Writes the files of these folders of `logs`, given by name with the time of its end, to pack
/// `number`. A folder without files is not in it; blocking.
StatusOr<Pack> WritePack(const std::string& logs, std::uint64_t number,
                         const std::vector<std::pair<std::string, std::uint64_t>>& folders);
/// All packs in a folder of logs, the oldest first; one that cannot be read is logged and left out.
std::vector<Pack> FindPacks(const std::string& logs);

class LogPacks {
 public:
  struct Found {
    const PackedFile* file = nullptr;
    std::string pack;  // path of the pack
  };

  /// Takes a pack into the index. A folder that another pack has, too, is from now on in both; of a
  /// file the newer pack's counts.
  void Add(Pack pack);
  std::optional<Found> Find(const std::string& file) const;
  bool Has(const std::string& folder) const { return folders_.count(folder) > 0; }
  /// The names of all packed files of a folder.
  std::vector<std::string> FilesOf(const std::string& folder) const;
  /// Forgets a folder, and removes packs that have none left.
  void Remove(const std::string& folder);
  std::uint64_t next_number() const { return next_; }
  std::size_t packs() const { return packs_.size(); }

 private:
  struct Kept {
    std::string path;
    std::size_t folders = 0;
  };
  struct Place {
    std::uint64_t pack = 0;
    PackedFile file;
  };

  std::uint64_t next_ = 1;
  std::map<std::uint64_t, Kept> packs_;
  std::map<std::string, std::vector<std::uint64_t>> folders_;  // the packs that have it
  std::map<std::string, Place> files_;
};

}  // namespace troupe::worker
