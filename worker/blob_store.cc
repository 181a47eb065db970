#include "worker/blob_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <vector>

#include "runtime/base/log.h"
#include "runtime/os/directory.h"
#include "runtime/os/text.h"

namespace troupe::worker {
namespace {

constexpr std::size_t kDigestBytes = 32;
constexpr char kPartSuffix[] = ".part";

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    bytes.push_back(static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1])));
  }
  return bytes;
}

Status WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return os::SystemError("write a blob");
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return absl::OkStatus();
}

}  // namespace

std::string HexOf(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex.push_back(kDigits[byte >> 4]);
    hex.push_back(kDigits[byte & 15]);
  }
  return hex;
}

BlobStore::BlobStore(std::string folder, std::uint64_t bytes_max, std::size_t blobs_max)
    : folder_(std::move(folder)), bytes_max_(bytes_max), blobs_max_(blobs_max) {}

StatusOr<std::unique_ptr<BlobStore>> BlobStore::Open(const std::string& folder,
                                                     std::uint64_t bytes_max,
                                                     std::size_t blobs_max) {
  TROUPE_TRY(os::MakePrivateDirectory(folder));
  std::unique_ptr<BlobStore> store(new BlobStore(folder, bytes_max, blobs_max));
  store->Scan();
  return store;
}

BlobStore::~BlobStore() {
  for (const auto& [key, upload] : uploads_) unlink(upload.path.c_str());
}

void BlobStore::Scan() {
  struct Found {
    std::filesystem::file_time_type time;
    std::string name;
    std::uint64_t size;
  };
  std::vector<Found> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    if (name.size() == 2 * kDigestBytes &&
        name.find_first_not_of("0123456789abcdef") == std::string::npos) {
      found.push_back({entry.last_write_time(error), name, entry.file_size(error)});
    } else if (name.find(kPartSuffix) != std::string::npos) {
      std::filesystem::remove(entry.path(), error);
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.time < b.time; });
  for (const Found& each : found) Insert(FromHex(each.name), each.size);
  for (const Found& each : found) {
    if (each.size >= kLargeBytes) Has(FromHex(each.name));
  }
}

std::string BlobStore::PathOf(const std::string& sha256) const {
  return folder_ + "/" + HexOf(sha256);
}

StatusOr<bool> BlobStore::Put(std::uint64_t uploader, const std::string& sha256,
                              std::uint64_t offset, std::uint64_t size, std::string_view chunk) {
  if (sha256.size() != kDigestBytes) return MakeError(ErrorCode::kInvalid, "not a SHA-256 digest");
  if (Has(sha256)) return true;
  if (size > bytes_max_) {
    return MakeError(ErrorCode::kTooLarge, std::to_string(size >> 20) + " MiB; this node keeps " +
                                               std::to_string(bytes_max_ >> 20) + " MiB at most");
  }
  const auto key = std::make_pair(uploader, sha256);
  auto found = uploads_.find(key);
  if (found == uploads_.end()) {
    if (offset != 0) return MakeError(ErrorCode::kInvalid, "an upload begins at offset 0");
    TROUPE_TRY(RoomForUpload(uploader));
    Upload upload;
    upload.path = PathOf(sha256) + "." + std::to_string(next_upload_++) + kPartSuffix;
    upload.fd = UniqueFd(open(upload.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!upload.fd.valid()) return os::SystemError("make " + upload.path);
    found = uploads_.emplace(key, std::move(upload)).first;
  }
  Upload& upload = found->second;
  Status status;
  if (offset != upload.have || offset + chunk.size() > size) {
    status = MakeError(ErrorCode::kInvalid, "a chunk at " + std::to_string(offset) + " of " +
                                                std::to_string(size) + " bytes, when " +
                                                std::to_string(upload.have) + " are here");
  } else {
    status = WriteAll(upload.fd.get(), chunk);
  }
  if (status.ok()) {
    upload.hasher.Update(chunk);
    upload.have += chunk.size();
    if (upload.have < size) return false;
    if (upload.hasher.Finish() == sha256) {
      const std::string path = upload.path;
      uploads_.erase(found);
      TROUPE_TRY(Adopt(path, sha256));
      return true;
    }
    status =
        MakeError(ErrorCode::kInvalid, "the bytes do not have the digest they were sent under");
  }
  unlink(upload.path.c_str());
  uploads_.erase(found);
  return status;
}

Status BlobStore::RoomForUpload(std::uint64_t uploader) const {
  const auto first = uploads_.lower_bound({uploader, ""});
  const auto last = uploads_.lower_bound({uploader + 1, ""});
  const bool too_many = static_cast<std::size_t>(std::distance(first, last)) >= kUploadsOfOneMax;
  if (!too_many && uploads_.size() < kUploadsMax) return absl::OkStatus();
  return MakeError(ErrorCode::kTooLarge,
                   too_many ? "it has " + std::to_string(kUploadsOfOneMax) +
                                  " unfinished uploads (kUploadsOfOneMax): finish one first"
                            : "this node has " + std::to_string(kUploadsMax) +
                                  " unfinished uploads (kUploadsMax): try again later");
}

void BlobStore::AbandonUploads(std::uint64_t uploader) {
  auto entry = uploads_.lower_bound({uploader, ""});
  while (entry != uploads_.end() && entry->first.first == uploader) {
    unlink(entry->second.path.c_str());
    entry = uploads_.erase(entry);
  }
}

BlobStore::Traits BlobStore::TraitsOf(int fd) {
  struct stat info{};
  if (fstat(fd, &info) != 0) return {};
  return {static_cast<std::int64_t>(info.st_ino), info.st_size,
          static_cast<std::int64_t>(info.st_ctim.tv_sec) * 1'000'000'000 + info.st_ctim.tv_nsec};
}

bool BlobStore::IsIntact(const std::string& sha256, Blob& blob, int fd) {
  const Traits now = TraitsOf(fd);
  if (now == blob.traits) return true;
  const StatusOr<FileDigest> digest = HashFile(PathOf(sha256));
  if (!digest.ok() || digest->sha256 != sha256) return false;
  blob.traits = now;
  return true;
}

UniqueFd BlobStore::OpenIntact(const std::string& sha256) {
  const auto found = blobs_.find(sha256);
  if (found == blobs_.end()) return {};
  UniqueFd fd(open(PathOf(sha256).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (fd.valid() && IsIntact(sha256, found->second, fd.get())) return fd;
  Log(LogLevel::kWarning,
      "a blob is given up: its file is gone, or has another content than it was kept with",
      {{"sha256", HexOf(sha256)}});
  Drop(found);
  return {};
}

void BlobStore::Drop(Blobs::iterator blob) {
  unlink(PathOf(blob->first).c_str());
  total_ -= blob->second.size;
  blobs_.erase(blob);
}

BlobPiece BlobStore::Get(const std::string& sha256, std::uint64_t offset) {
  BlobPiece piece;
  const UniqueFd fd = OpenIntact(sha256);
  if (!fd.valid()) return piece;
  const auto found = blobs_.find(sha256);
  found->second.used = ++tick_;
  piece.found = true;
  piece.size = found->second.size;
  if (offset >= piece.size) return piece;
  piece.bytes.resize(std::min<std::uint64_t>(kBlobChunkBytes, piece.size - offset));
  std::size_t have = 0;
  while (have < piece.bytes.size()) {
    const ssize_t got = pread(fd.get(), piece.bytes.data() + have, piece.bytes.size() - have,
                              static_cast<off_t>(offset + have));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  piece.bytes.resize(have);
  return piece;
}

Status BlobStore::Adopt(const std::string& path, const std::string& sha256) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return os::SystemError(path);
  if (Has(sha256)) {
    unlink(path.c_str());
    return absl::OkStatus();
  }
  if (rename(path.c_str(), PathOf(sha256).c_str()) != 0) return os::SystemError("keep " + path);
  Blob& blob = Insert(sha256, static_cast<std::uint64_t>(info.st_size));
  const UniqueFd fd(open(PathOf(sha256).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (fd.valid()) blob.traits = TraitsOf(fd.get());
  return absl::OkStatus();
}

BlobStore::Blob& BlobStore::Insert(const std::string& sha256, std::uint64_t size) {
  Blob blob;
  blob.size = size;
  blob.used = ++tick_;
  MakeRoom(size);
  total_ += size;
  return blobs_[sha256] = blob;
}

void BlobStore::MakeRoom(std::uint64_t bytes) {
  while (total_ + bytes > bytes_max_ || blobs_.size() >= blobs_max_) {
    auto oldest = blobs_.end();
    for (auto each = blobs_.begin(); each != blobs_.end(); ++each) {
      if (each->second.pins > 0) continue;
      if (oldest == blobs_.end() || each->second.used < oldest->second.used) oldest = each;
    }
    if (oldest == blobs_.end()) return;  // all in use: the cap waits
    Drop(oldest);
  }
}

void BlobStore::Pin(const std::string& sha256) {
  const auto found = blobs_.find(sha256);
  if (found != blobs_.end()) ++found->second.pins;
}

void BlobStore::Unpin(const std::string& sha256) {
  const auto found = blobs_.find(sha256);
  if (found != blobs_.end() && found->second.pins > 0) --found->second.pins;
}

}  // namespace troupe::worker
