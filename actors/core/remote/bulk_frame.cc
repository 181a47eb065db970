#include "actors/core/remote/bulk_frame.h"

#include <cstring>

namespace troupe::actors {
namespace {

constexpr std::uint16_t kBulkMagic = 0x5254;
constexpr std::uint8_t kBulkVersion = 1;

struct BulkWire {
  std::uint16_t magic = kBulkMagic;
  std::uint8_t version = kBulkVersion;
  std::uint8_t kind = kBulkFrameKind;
  std::uint16_t word = 0;
  std::uint16_t zero = 0;
  std::uint32_t body_bytes = kBulkFrameBytes - 16;
  std::uint32_t zero2 = 0;
  std::uint64_t id[2] = {0, 0};
  std::uint64_t sequence = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t total = 0;
};
static_assert(sizeof(BulkWire) == kBulkFrameBytes);

Status Wrong(const char* what) {
  return MakeError(ErrorCode::kInvalid,
                   std::string("bytes that are no frame of a bulk link: ") + what);
}

/// Returns true if the numbers are valid, whatever came before.
bool Sound(const BulkFrame& frame) {
  switch (frame.word) {
    case BulkWord::kHello:
      return !frame.session.IsNil();
    case BulkWord::kRead:
      return frame.bytes > 0 && frame.bytes <= kBulkPartBytes && frame.offset <= kBulkValueBytesMax;
    case BulkWord::kPart:
      return frame.bytes > 0 && frame.bytes <= kBulkPartBytes &&
             frame.total <= kBulkValueBytesMax && frame.offset < frame.total &&
             frame.bytes <= frame.total - frame.offset;
    case BulkWord::kGone:
    case BulkWord::kTaken:
    case BulkWord::kDropped:
    case BulkWord::kHeld:
    case BulkWord::kRefused:
    case BulkWord::kLetGo:
    case BulkWord::kLeft:
    case BulkWord::kWant:
    case BulkWord::kInside:
      return true;
    case BulkWord::kHold:
      return frame.bytes <= 1;
    case BulkWord::kReady:
      return frame.offset <= 0xFFFF && frame.total > 0 && frame.total <= kBulkValueBytesMax;
  }
  return false;
}

}  // namespace

BulkFrame WordOf(BulkWord word, const store::ObjectId& id, std::uint64_t offset) {
  BulkFrame frame;
  frame.word = word;
  frame.id = id;
  frame.offset = offset;
  return frame;
}

void AppendBulkFrame(std::string& out, const BulkFrame& frame) {
  BulkWire wire;
  wire.word = static_cast<std::uint16_t>(frame.word);
  const bool hello = frame.word == BulkWord::kHello;
  wire.id[0] = hello ? frame.session.hi : frame.id.owner.hi;
  wire.id[1] = hello ? frame.session.lo : frame.id.owner.lo;
  wire.sequence = frame.id.sequence;
  wire.offset = frame.offset;
  wire.bytes = frame.bytes;
  wire.total = frame.total;
  out.append(reinterpret_cast<const char*>(&wire), sizeof wire);
}

StatusOr<BulkFrame> ReadBulkFrame(std::string_view bytes) {
  BulkWire wire;
  if (bytes.size() < sizeof wire) return Wrong("too few");
  std::memcpy(&wire, bytes.data(), sizeof wire);
  const BulkWire good;
  if (wire.magic != good.magic || wire.version != good.version || wire.kind != good.kind ||
      wire.body_bytes != good.body_bytes || wire.zero != 0 || wire.zero2 != 0) {
    return Wrong("another head");
  }
  if (wire.word < 1 || wire.word > static_cast<std::uint16_t>(BulkWord::kReady))
    return Wrong("another type");
  BulkFrame frame;
  frame.word = static_cast<BulkWord>(wire.word);
  if (frame.word == BulkWord::kHello) {
    frame.session = SessionId(wire.id[0], wire.id[1]);
  } else {
    frame.id = {ProcessId(wire.id[0], wire.id[1]), wire.sequence};
  }
  frame.offset = wire.offset;
  frame.bytes = wire.bytes;
  frame.total = wire.total;
  if (!Sound(frame)) return Wrong("numbers that cannot be");
  return frame;
}

}  // namespace troupe::actors
