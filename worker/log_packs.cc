#include "worker/log_packs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/os/text.h"
#include "worker/log_files.h"

namespace troupe::worker {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPackPrefix = ".pack-";
constexpr std::string_view kUnfinished = ".unfinished";
constexpr std::string_view kMagic = "troupe logs 1\n";
constexpr std::uint64_t kNameMax = 4096;

std::string FolderOf(const std::string& file) { return file.substr(0, file.find('/')); }

std::uint64_t NumberIn(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// The regular files in and beneath a folder, by their names under `logs`.
std::vector<std::string> FilesUnder(const std::string& logs, const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::recursive_directory_iterator each(logs + "/" + folder, error);
  for (; !error && each != fs::recursive_directory_iterator(); each.increment(error)) {
    if (each->symlink_status(error).type() != fs::file_type::regular) continue;
    names.push_back(fs::path(each->path()).lexically_relative(logs).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Status WriteFile(std::ofstream& pack, const std::string& logs, const std::string& name,
                 std::uint64_t ended_us, PackedFolder* folder) {
  PackedFile file;
  file.name = name;
  const auto text = os::ReadText(logs + "/" + name);
  if (!text) return MakeError(ErrorCode::kInternal, "the log " + name + " cannot be read");
  if (const auto dropped = os::ReadText(logs + "/" + name + kDroppedSuffix))
    file.dropped = NumberIn(*dropped);
  file.bytes = text->size();
  pack << file.bytes << ' ' << file.dropped << ' ' << ended_us << ' ' << name.size() << '\n'
       << name;
  file.at = static_cast<std::uint64_t>(pack.tellp());
  pack << *text;
  folder->files.push_back(std::move(file));
  return absl::OkStatus();
}

// The next file in a pack; nullopt: it ends here, or is not whole.
std::optional<std::pair<PackedFile, std::uint64_t>> ReadHeader(std::ifstream& pack,
                                                               std::uint64_t size) {
  PackedFile file;
  std::uint64_t ended_us = 0;
  std::uint64_t length = 0;
  if (!(pack >> file.bytes >> file.dropped >> ended_us >> length)) return std::nullopt;
  if (pack.get() != '\n' || length > kNameMax) return std::nullopt;
  file.name.resize(length);
  if (!pack.read(file.name.data(), static_cast<std::streamsize>(length))) return std::nullopt;
  file.at = static_cast<std::uint64_t>(pack.tellg());
  if (file.bytes > size - file.at) return std::nullopt;
  pack.seekg(static_cast<std::streamoff>(file.bytes), std::ios::cur);
  return std::pair(std::move(file), ended_us);
}

StatusOr<Pack> ReadPack(const std::string& path, std::uint64_t number) {
  Pack pack;
  pack.path = path;
  pack.number = number;
  std::error_code error;
  const std::uint64_t size = fs::file_size(path, error);
  std::ifstream in(path, std::ios::binary);
  std::string magic(kMagic.size(), '\0');
  if (error || !in.read(magic.data(), static_cast<std::streamsize>(magic.size())) ||
      magic != kMagic)
    return MakeError(ErrorCode::kInvalid, path + " is no pack of logs");
  while (auto next = ReadHeader(in, size)) {
    const std::string folder = FolderOf(next->first.name);
    if (pack.folders.empty() || pack.folders.back().name != folder)
      pack.folders.push_back({folder, next->second, {}});
    pack.folders.back().files.push_back(std::move(next->first));
  }
  return pack;
}

}  // namespace

std::uint64_t PackedFolder::bytes() const {
  std::uint64_t sum = 0;
  for (const PackedFile& file : files) sum += file.bytes;
  return sum;
}

StatusOr<Pack> WritePack(const std::string& logs, std::uint64_t number,
                         const std::vector<std::pair<std::string, std::uint64_t>>& folders) {
  Pack pack;
  pack.number = number;
  pack.path = logs + "/" + std::string(kPackPrefix) + std::to_string(number);
  const std::string unfinished = pack.path + std::string(kUnfinished);
  unlink(unfinished.c_str());
  const UniqueFd made(
      open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!made.valid()) return os::SystemError("make " + unfinished);
  std::ofstream out(unfinished, std::ios::binary);
  out << kMagic;
  for (const auto& [name, ended_us] : folders) {
    PackedFolder folder{name, ended_us, {}};
    for (const std::string& file : FilesUnder(logs, name)) {
      if (!file.ends_with(kDroppedSuffix))
        TROUPE_TRY(WriteFile(out, logs, file, ended_us, &folder));
    }
    if (!folder.files.empty()) pack.folders.push_back(std::move(folder));
  }
  out.close();
  if (!out || fsync(made.get()) != 0) {
    unlink(unfinished.c_str());
    return MakeError(ErrorCode::kInternal, unfinished + " cannot be written: is the disk full?");
  }
  if (std::rename(unfinished.c_str(), pack.path.c_str()) != 0)
    return os::SystemError("rename " + unfinished);
  return pack;
}

std::vector<Pack> FindPacks(const std::string& logs) {
  std::vector<Pack> packs;
  std::error_code error;
  fs::directory_iterator entries(logs, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (!name.starts_with(kPackPrefix)) continue;
    if (name.ends_with(kUnfinished)) {
      unlink(entries->path().c_str());
      continue;
    }
    const std::uint64_t number = NumberIn(std::string_view(name).substr(kPackPrefix.size()));
    StatusOr<Pack> pack = ReadPack(entries->path().string(), number);
    if (pack.ok() && number > 0) {
      packs.push_back(*std::move(pack));
    } else {
      Log(LogLevel::kWarning, "packed logs cannot be read",
          {{"file", entries->path().string()}, {"why", MessageOf(pack.status())}});
    }
  }
  std::sort(packs.begin(), packs.end(),
            [](const Pack& a, const Pack& b) { return a.number < b.number; });
  return packs;
}

void LogPacks::Add(Pack pack) {
  next_ = std::max(next_, pack.number + 1);
  if (pack.folders.empty()) {
    unlink(pack.path.c_str());
    return;
  }
  packs_[pack.number] = Kept{pack.path, pack.folders.size()};
  for (PackedFolder& folder : pack.folders) {
    folders_[folder.name].push_back(pack.number);
    for (PackedFile& file : folder.files) {
      const std::string name = file.name;
      files_[name] = Place{pack.number, std::move(file)};
    }
  }
}

std::optional<LogPacks::Found> LogPacks::Find(const std::string& file) const {
  const auto found = files_.find(file);
  if (found == files_.end()) return std::nullopt;
  return Found{&found->second.file, packs_.at(found->second.pack).path};
}

std::vector<std::string> LogPacks::FilesOf(const std::string& folder) const {
  std::vector<std::string> names;
  const std::string prefix = folder + "/";
  for (auto each = files_.lower_bound(prefix);
       each != files_.end() && each->first.starts_with(prefix); ++each) {
    names.push_back(each->first);
  }
  return names;
}

void LogPacks::Remove(const std::string& folder) {
  const auto found = folders_.find(folder);
  if (found == folders_.end()) return;
  for (const std::string& file : FilesOf(folder)) files_.erase(file);
  for (const std::uint64_t number : found->second) {
    const auto pack = packs_.find(number);
    if (--pack->second.folders > 0) continue;
    unlink(pack->second.path.c_str());
    packs_.erase(pack);
  }
  folders_.erase(found);
}

}  // namespace troupe::worker
