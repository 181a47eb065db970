// Payloads and values by content: files named by the SHA-256 of their bytes.
//
// View: one node; on the worker's loop; blocking for one chunk. What arrives is hashed as it comes
// and becomes visible only when its digest is right. Over the cap of bytes or of their number, what
// was used least recently goes, unless it is pinned. A file whose size, inode or time of change is
// not what it was, or that an earlier life left, is hashed again before it is given away (1 s for
// each GB or so, once; a large one at the start), and given up when its content is another: then it
// is fetched anew, or lost as if it had never been here. Chunks of one upload come in order;
// several uploaders do not disturb each other.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "worker/hasher.h"

namespace troupe::worker {

inline constexpr std::size_t kBlobChunkBytes = 4u << 20;

/// Files of a node are not to be without number.
inline constexpr std::size_t kBlobsMax = 4000;

struct BlobPiece {
  bool found = false;
  std::uint64_t size = 0;  // the whole blob's
  std::string bytes;
};

class BlobStore {
 public:
  /// `folder` is made if need be; unfinished uploads of an earlier life are removed.
  static StatusOr<std::unique_ptr<BlobStore>> Open(const std::string& folder,
                                                   std::uint64_t bytes_max,
                                                   std::size_t blobs_max = kBlobsMax);
  ~BlobStore();

  /// A chunk of upload `uploader` (any number that tells uploaders apart). True when the blob is
  /// complete (also when it was here already). Errors: kInvalid (order, digest), kTooLarge.
  StatusOr<bool> Put(std::uint64_t uploader, const std::string& sha256, std::uint64_t offset,
                     std::uint64_t size, std::string_view chunk);
  void AbandonUploads(std::uint64_t uploader);
  BlobPiece Get(const std::string& sha256, std::uint64_t offset);

  /// Takes a finished file in by rename; its digest is `sha256`.
  Status Adopt(const std::string& path, const std::string& sha256);
  /// Returns true if it is here, with the content of its name.
  bool Has(const std::string& sha256) { return OpenIntact(sha256).valid(); }
  std::string PathOf(const std::string& sha256) const;
  /// A pinned blob stays; pins count.
  void Pin(const std::string& sha256);
  void Unpin(const std::string& sha256);
  std::uint64_t total_bytes() const { return total_; }

  /// How many uploads may be unfinished, each of which has a descriptor: of one uploader, and of
  /// all.
  static constexpr std::size_t kUploadsOfOneMax = 64;
  static constexpr std::size_t kUploadsMax = 512;
  /// A blob of this size that an earlier life left is hashed when the store is opened: later, the
  /// worker's loop would stand still for it.
  static constexpr std::uint64_t kLargeBytes = 256u << 20;

 private:
  struct Traits {  // no write leaves them as they are
    std::int64_t inode = 0;
    std::int64_t size = 0;
    std::int64_t changed_ns = 0;
    friend bool operator==(const Traits&, const Traits&) = default;
  };
  struct Blob {
    std::uint64_t size = 0;
    std::uint64_t used = 0;  // larger: later
    int pins = 0;
    Traits traits;  // when its content was last known to be right; all 0: never
  };
  using Blobs = std::map<std::string, Blob>;
  struct Upload {
    UniqueFd fd;
    std::string path;
    Hasher hasher;
    std::uint64_t have = 0;
  };
  BlobStore(std::string folder, std::uint64_t bytes_max, std::size_t blobs_max);
  void Scan();
  Blob& Insert(const std::string& sha256, std::uint64_t size);
  static Traits TraitsOf(int fd);
  bool IsIntact(const std::string& sha256, Blob& blob, int fd);
  /// Opens a blob's file, if it has the content of its name; else returns none, and gives the blob
  /// up.
  UniqueFd OpenIntact(const std::string& sha256);
  void Drop(Blobs::iterator blob);
  void MakeRoom(std::uint64_t bytes);
  Status RoomForUpload(std::uint64_t uploader) const;

  const std::string folder_;
  const std::uint64_t bytes_max_;
  const std::size_t blobs_max_;
  std::uint64_t total_ = 0;
  std::uint64_t tick_ = 0;
  std::uint64_t next_upload_ = 0;
  Blobs blobs_;
  std::map<std::pair<std::uint64_t, std::string>, Upload> uploads_;
};

/// Lower-case hex of raw bytes.
std::string HexOf(std::string_view bytes);

}  // namespace troupe::worker
