#include "worker/log_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/base/log_file.h"
#include "runtime/os/directory.h"
#include "runtime/os/text.h"
#include "worker/core/log_tail.h"

namespace troupe::worker {
namespace {

constexpr std::uint32_t kReadMax = 1u << 20;
// Longest line: a reader gets no more of a longer one.
constexpr std::uint64_t kLineBytesMax = 64u << 10;
constexpr std::uint64_t kNoEnd = ~std::uint64_t{0};
constexpr char kRemovedPrefix[] = ".removed-";  // no launch's or actor's: those are hexadecimal

std::string ReadAt(int fd, std::uint64_t offset, std::size_t size) {
  std::string text(size, '\0');
  std::size_t have = 0;
  while (have < size) {
    const ssize_t got =
        pread(fd, text.data() + have, size - have, static_cast<off_t>(offset + have));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  text.resize(have);
  return text;
}

std::uint64_t SizeOf(int fd) {
  struct stat info{};
  return fstat(fd, &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

std::uint64_t ChangedUs(const struct stat& info) {
  return static_cast<std::uint64_t>(info.st_mtim.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(info.st_mtim.tv_nsec) / 1000;
}

StatusOr<UniqueFd> OpenPack(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return os::SystemError("open " + path);
  return fd;
}

}  // namespace

LogFolder MeasureLogFolder(const std::string& folder) {
  const std::filesystem::path path(folder);
  LogFolder measured;
  measured.name = path.filename().string();
  const auto add = [&measured](const std::string& each) {
    struct stat info{};
    if (lstat(each.c_str(), &info) != 0) return;
    measured.changed_us = std::max(measured.changed_us, ChangedUs(info));
    ++measured.files;
    if (S_ISREG(info.st_mode)) measured.bytes += static_cast<std::uint64_t>(info.st_size);
  };
  add(path.string());
  std::error_code error;
  std::filesystem::recursive_directory_iterator files(path, error);
  for (; !error && files != std::filesystem::recursive_directory_iterator();
       files.increment(error)) {
    add(files->path().string());
  }
  return measured;
}

std::vector<LogFolder> ListLogFolders(const std::string& folder) {
  std::vector<LogFolder> found;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (name.rfind(kRemovedPrefix, 0) == 0) {
      os::RemoveTree(entries->path().string());
    } else if (entries->is_directory(error)) {  // else a pack
      found.push_back(MeasureLogFolder(entries->path().string()));
    }
  }
  return found;
}

std::string LogFile(const LogPlace& place, bool err) {
  return place.folder + "/" + place.stem + (err ? ".err" : ".out");
}

LogFiles::LogFiles(std::string folder, UniqueFd directory, std::uint64_t bytes_max)
    : folder_(std::move(folder)), directory_(std::move(directory)), bytes_max_(bytes_max) {}

StatusOr<LogFiles> LogFiles::Open(const std::string& folder, std::uint64_t bytes_max_per_file) {
  TROUPE_TRY(os::MakePrivateDirectory(folder));
  TROUPE_ASSIGN(UniqueFd directory, os::OpenDirectory(folder));
  return LogFiles(folder, std::move(directory), bytes_max_per_file);
}

StatusOr<LogFiles::Pair> LogFiles::Create(const LogPlace& place) {
  TROUPE_TRY(os::MakeDirectories(Path(place.folder)));
  for (const bool err : {false, true}) TROUPE_TRY(TakeOutOfPack(LogFile(place, err)));
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND;
  Pair pair;
  TROUPE_ASSIGN(pair.out, os::OpenBeneath(directory_, LogFile(place, false), kFlags, 0600));
  TROUPE_ASSIGN(pair.err, os::OpenBeneath(directory_, LogFile(place, true), kFlags, 0600));
  // Opened non-blocking for safety; the process is given ordinary descriptors.
  fcntl(pair.out.get(), F_SETFL, O_APPEND);
  fcntl(pair.err.get(), F_SETFL, O_APPEND);
  return pair;
}

std::uint64_t LogFiles::DroppedOf(const std::string& file) const {
  if (const auto known = dropped_.find(file); known != dropped_.end()) return known->second;
  std::uint64_t dropped = 0;  // dropped in an earlier life of this worker
  if (const auto text = os::ReadText(Path(file) + kDroppedSuffix)) {
    std::from_chars(text->data(), text->data() + text->size(), dropped);
  }
  return dropped;
}

StatusOr<LogPiece> LogFiles::Read(const std::string& file, std::uint64_t offset,
                                  std::uint32_t bytes_max) const {
  const StatusOr<UniqueFd> fd = os::OpenBeneath(directory_, file, O_RDONLY);
  if (fd.ok())
    return Piece(fd->get(), 0, kNoEnd, DroppedOf(file), offset, bytes_max);
  const auto packed = packs_.Find(file);
  if (!packed) return fd.status();
  const PackedFile& kept = *packed->file;
  TROUPE_ASSIGN(const UniqueFd pack, OpenPack(packed->pack));
  return Piece(pack.get(), kept.at, kept.at + kept.bytes, kept.dropped, offset, bytes_max);
}

LogPiece LogFiles::Piece(int fd, std::uint64_t begin, std::uint64_t end, std::uint64_t dropped,
                         std::uint64_t offset, std::uint32_t bytes_max) {
  LogPiece piece;
  piece.offset = std::max(offset, dropped);
  piece.dropped = piece.offset - offset;
  const std::uint64_t most = bytes_max == 0 ? kReadMax : std::min(bytes_max, kReadMax);
  const std::uint64_t at = std::min(begin + (piece.offset - dropped), end);
  piece.text = ReadAt(fd, at, static_cast<std::size_t>(std::min(most, end - at)));
  piece.next = piece.offset + piece.text.size();
  return piece;
}

StatusOr<std::uint64_t> LogFiles::LengthOf(const std::string& file) const {
  const StatusOr<UniqueFd> fd = os::OpenBeneath(directory_, file, O_RDONLY);
  if (fd.ok()) return DroppedOf(file) + SizeOf(fd->get());
  const auto packed = packs_.Find(file);
  if (!packed) return fd.status();
  return packed->file->dropped + packed->file->bytes;
}

StatusOr<LogPiece> LogFiles::End(const std::string& file, std::uint32_t bytes_max) const {
  const std::uint64_t most = std::min(bytes_max, kReadMax);
  TROUPE_ASSIGN(const std::uint64_t length, LengthOf(file));
  TROUPE_ASSIGN(LogPiece piece, Read(file, length > most ? length - most : 0, bytes_max));
  const std::size_t newline = piece.offset == 0 ? std::string::npos : piece.text.find('\n');
  if (newline != std::string::npos) {
    piece.offset += newline + 1;
    piece.text.erase(0, newline + 1);
  }
  return piece;
}

StatusOr<std::uint64_t> LogFiles::Since(const std::string& file, std::uint64_t since_us) const {
  std::uint64_t end = times_.EndAt(file, since_us).value_or(0);
  const StatusOr<UniqueFd> fd = os::OpenBeneath(directory_, file, O_RDONLY);
  struct stat info{};
  if (fd.ok() && fstat(fd->get(), &info) == 0 && ChangedUs(info) <= since_us)
    end = DroppedOf(file) + static_cast<std::uint64_t>(info.st_size);
  if (end == 0) return end;
  const std::uint64_t from = end > kLineBytesMax ? end - kLineBytesMax : 0;
  TROUPE_ASSIGN(const LogPiece before, Read(file, from, static_cast<std::uint32_t>(end - from)));
  if (before.offset >= end) return end;
  const std::string_view text = std::string_view(before.text).substr(0, end - before.offset);
  const std::size_t newline = text.rfind('\n');
  return newline == std::string_view::npos ? before.offset : before.offset + newline + 1;
}

// Unpacks a file, so that a new writer appends to it.
Status LogFiles::TakeOutOfPack(const std::string& file) {
  const auto packed = packs_.Find(file);
  if (!packed || os::OpenBeneath(directory_, file, O_RDONLY).ok()) return absl::OkStatus();
  TROUPE_ASSIGN(const UniqueFd pack, OpenPack(packed->pack));
  const std::string text = ReadAt(pack.get(), packed->file->at, packed->file->bytes);
  TROUPE_ASSIGN(const UniqueFd fd,
                os::OpenBeneath(directory_, file, O_WRONLY | O_CREAT | O_APPEND, 0600));
  if (write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return os::SystemError("write " + Path(file));
  if (packed->file->dropped > 0) NoteDropped(file, packed->file->dropped);
  return absl::OkStatus();
}

std::string LogFiles::Tail(const std::string& file) const {
  const StatusOr<UniqueFd> fd = os::OpenBeneath(directory_, file, O_RDONLY);
  if (!fd.ok()) return "";
  const std::uint64_t size = SizeOf(fd->get());
  const std::uint64_t begin = size > kLogTailBytes ? size - kLogTailBytes : 0;
  return LastLines(ReadAt(fd->get(), begin, static_cast<std::size_t>(size - begin)), begin == 0);
}

void LogFiles::Trim(const std::string& file, std::uint64_t now_us) {
  const StatusOr<UniqueFd> fd = os::OpenBeneath(directory_, file, O_RDWR);
  if (!fd.ok()) return;
  struct stat info{};
  if (fstat(fd->get(), &info) == 0) {
    times_.Note(file, now_us, DroppedOf(file) + static_cast<std::uint64_t>(info.st_size));
    // A file with another name is somebody's own, who asked for all of it.
    if (info.st_nlink > 1) return;
  }
  const std::uint64_t dropped = HalveLogFile(fd->get(), bytes_max_);
  if (dropped == 0) return;
  NoteDropped(file, DroppedOf(file) + dropped);
}

void LogFiles::NoteDropped(const std::string& file, std::uint64_t total) {
  dropped_[file] = total;
  const UniqueFd note(open((Path(file) + kDroppedSuffix).c_str(),
                           O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  const std::string text = std::to_string(total);
  if (!note.valid() || write(note.get(), text.data(), text.size()) < 0) {
    Log(LogLevel::kWarning, "the gap of a log could not be noted",
        {{"file", file}, {"why", MessageOf(os::SystemError("write"))}});
  }
}

StatusOr<std::string> LogFiles::Detach(const std::string& folder) {
  const std::string away = Path(kRemovedPrefix + folder);
  if (rename(Path(folder).c_str(), away.c_str()) != 0) {
    if (errno == ENOENT) return MakeError(ErrorCode::kNotFound, "no logs " + folder);
    return os::SystemError("rename " + Path(folder));
  }
  // '0' is behind '/'
  dropped_.erase(dropped_.lower_bound(folder + "/"), dropped_.lower_bound(folder + "0"));
  return away;
}

std::uint64_t LogFiles::NewestEpoch(const std::string& launch) const {
  constexpr std::string_view kPrefix = "epoch-";
  std::uint64_t newest = 0;
  for (const std::string& file : packs_.FilesOf(launch)) {
    const std::string_view rest = std::string_view(file).substr(launch.size() + 1);
    std::uint64_t epoch = 0;
    if (rest.starts_with(kPrefix))
      std::from_chars(rest.data() + kPrefix.size(), rest.data() + rest.size(), epoch);
    newest = std::max(newest, epoch);
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(Path(launch), error)) {
    const std::string name = entry.path().filename().string();
    if (name.compare(0, kPrefix.size(), kPrefix) != 0) continue;
    std::uint64_t epoch = 0;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), epoch);
    newest = std::max(newest, epoch);
  }
  return newest;
}

}  // namespace troupe::worker
