#include "head/journal/wal_scan.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

namespace troupe::head {
namespace {

constexpr std::size_t kHeaderBytes = 32;
constexpr std::size_t kFrameHeaderBytes = 24;
constexpr std::uint32_t kMagicLittle = 0x377f0682;  // checksums over little-endian words
constexpr std::uint32_t kMagicBig = 0x377f0683;

std::uint32_t Big32(const char* p) {
  const auto* u = reinterpret_cast<const unsigned char*>(p);
  return static_cast<std::uint32_t>(u[0]) << 24 | static_cast<std::uint32_t>(u[1]) << 16 |
         static_cast<std::uint32_t>(u[2]) << 8 | u[3];
}
std::uint32_t Little32(const char* p) {
  const auto* u = reinterpret_cast<const unsigned char*>(p);
  return static_cast<std::uint32_t>(u[3]) << 24 | static_cast<std::uint32_t>(u[2]) << 16 |
         static_cast<std::uint32_t>(u[1]) << 8 | u[0];
}

struct Sums {
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  friend bool operator==(const Sums& x, const Sums& y) { return x.a == y.a && x.b == y.b; }
};

// SQLite's checksum (file format, section 4.2); `size` is a multiple of 8.
Sums Continue(Sums sums, const char* p, std::size_t size, bool big) {
  for (std::size_t i = 0; i < size; i += 8) {
    sums.a += (big ? Big32(p + i) : Little32(p + i)) + sums.b;
    sums.b += (big ? Big32(p + i + 4) : Little32(p + i + 4)) + sums.a;
  }
  return sums;
}

}  // namespace

WalVerdict ScanWal(std::string_view bytes) {
  WalVerdict verdict;
  if (bytes.size() < kHeaderBytes) return verdict;
  const char* p = bytes.data();
  const std::uint32_t magic = Big32(p);
  const std::uint32_t page = Big32(p + 8);
  const bool big = magic == kMagicBig;
  const bool usable =
      (magic == kMagicLittle || big) && page >= 512 && page <= 65536 && (page & (page - 1)) == 0;
  // The bad frame's stored checksum may be what is damaged: then the one it should have goes on.
  Sums previous{Big32(p + 24), Big32(p + 28)};
  Sums should_be = previous;
  if (!usable || !(Continue({}, p, 24, big) == previous)) return verdict;
  const std::string_view salts = bytes.substr(16, 8);
  verdict.good_bytes = kHeaderBytes;
  bool broken = false;
  std::uint64_t behind = 0;  // good frames behind the bad one
  for (std::size_t at = kHeaderBytes; at + kFrameHeaderBytes + page <= bytes.size();
       at += kFrameHeaderBytes + page) {
    const char* frame = p + at;
    const Sums stored{Big32(frame + 16), Big32(frame + 20)};
    const auto after = [&](Sums sums) {
      return Continue(Continue(sums, frame, 8, big), frame + kFrameHeaderBytes, page, big);
    };
    should_be = after(should_be);
    const bool same_salts = std::memcmp(frame + 8, salts.data(), 8) == 0;
    const bool good = same_salts && (stored == should_be || (broken && stored == after(previous)));
    if (good && broken) ++behind;
    // Frames that were never committed may be stale: a transaction cut off by a crash, half
    // overwritten since.
    if (good && broken && Big32(frame + 4) != 0) verdict.stranded = behind;
    if (!good) broken = true;
    if (good && !broken) {
      ++verdict.good_frames;
      verdict.good_bytes = at + kFrameHeaderBytes + page;
    }
    previous = stored;
  }
  return verdict;
}

StatusOr<WalVerdict> ScanWalFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    if (errno == ENOENT) return WalVerdict{};
    return MakeError(ErrorCode::kInternal, path + ": " + std::strerror(errno));
  }
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) return MakeError(ErrorCode::kInternal, path + " cannot be read");
  return ScanWal(bytes);
}

}  // namespace troupe::head
