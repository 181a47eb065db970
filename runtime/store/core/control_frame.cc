#include "runtime/store/core/control_frame.h"

#include <cstring>
#include <utility>

namespace troupe::store {
namespace {

constexpr std::uint16_t kMagic = 0x5254;
constexpr std::uint8_t kVersion = 2;
constexpr std::uint16_t kClean = 1;

// Append only: numbers are never used again.
enum Type : std::uint16_t {
  kAckType = 0,
  kHoldType = 1,
  kHoldOkType = 2,
  kGoneType = 3,
  kChangedType = 4,
  kSettleType = 5,
  kRecallType = 6,
  kDropType = 7,
  kFreeType = 8,
  kWithdrawType = 9,
  kTypes = 10,
};
constexpr std::size_t kLocationBytes = 64;
constexpr std::size_t kHandedBytes = 32;

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}
  void U32(std::uint32_t value) { Raw(&value, sizeof(value)); }
  void U64(std::uint64_t value) { Raw(&value, sizeof(value)); }
  void Id(const Id128& id) {
    U64(id.hi);
    U64(id.lo);
  }
  void Object(const ObjectId& id) {
    Id(id.owner);
    U64(id.sequence);
  }
  void Slot(const SlotId& slot) {
    Id(slot.maker);
    U32(slot.segment);
    U32(slot.slot);
  }
  void At(const Location& location) {
    Id(location.node);
    Slot(location.slot);
    U64(location.generation);
    U64(location.offset);
    U64(location.bytes);
  }
  // u32 kind, u32 locations, u32 contained, u32 length of the bytes; then these, in this order.
  void Put(const Answer& answer) {
    const Value& value = answer.value;
    const auto length = static_cast<std::uint32_t>(value.bytes ? value.bytes->size() : 0);
    U32(static_cast<std::uint32_t>(value.kind) | (value.bytes ? 0x100u : 0u));
    U32(static_cast<std::uint32_t>(value.locations.size()));
    U32(static_cast<std::uint32_t>(answer.contained.size()));
    U32(length);
    for (const Location& location : value.locations) At(location);
    for (const Handed& handed : answer.contained) {
      Object(handed.object);
      U64(handed.loan);
    }
    if (length != 0) out_.append(*value.bytes);
  }

 private:
  void Raw(const void* from, std::size_t bytes) {
    out_.append(static_cast<const char*>(from), bytes);
  }
  std::string& out_;
};

// Writes a body and says its type and flags.
struct Encode {
  Writer& to;
  std::uint16_t type = 0;
  std::uint16_t flags = 0;

  void operator()(const Hold& m) {
    type = kHoldType;
    to.Object(m.object);
    to.U64(m.settles);
  }
  void operator()(const HoldOk& m) {
    type = kHoldOkType;
    to.Object(m.object);
    to.Put(m.answer);
  }
  void operator()(const Gone& m) {
    type = kGoneType;
    to.Object(m.object);
  }
  void operator()(const Changed& m) {
    type = kChangedType;
    to.Object(m.object);
    to.Put(m.answer);
  }
  void operator()(const Settle& m) {
    type = kSettleType;
    flags = m.clean ? kClean : 0;
    to.U64(m.loan);
  }
  void operator()(const Recall& m) {
    type = kRecallType;
    to.U64(m.loan);
  }
  void operator()(const Drop& m) {
    type = kDropType;
    flags = m.clean ? kClean : 0;
    to.Object(m.object);
  }
  void operator()(const Free& m) {
    type = kFreeType;
    flags = m.clean ? kClean : 0;
    to.Slot(m.slot);
    to.U64(m.generation);
  }
  void operator()(const Withdraw& m) {
    type = kWithdrawType;
    to.Object(m.object);
    to.At(m.location);
  }
};

void WriteHead(char* at, std::uint16_t type, std::uint16_t flags, std::uint32_t body,
               std::uint64_t n, std::uint64_t acknowledged) {
  const std::uint64_t first = std::uint64_t{kMagic} | std::uint64_t{kVersion} << 16 |
                              std::uint64_t{kControlFrameKind} << 24 | std::uint64_t{type} << 32 |
                              std::uint64_t{flags} << 48;
  const std::uint64_t second = body;
  std::memcpy(at, &first, 8);
  std::memcpy(at + 8, &second, 8);
  std::memcpy(at + 16, &n, 8);
  std::memcpy(at + 24, &acknowledged, 8);
}

// Reads within what is there; after a first failure everything reads as nothing.
class Reader {
 public:
  Reader(std::string_view bytes, const ControlLimits& limits) : bytes_(bytes), limits_(limits) {}

  std::uint32_t U32() { return Number<std::uint32_t>(); }
  std::uint64_t U64() { return Number<std::uint64_t>(); }
  template <class Id>
  Id Named() {
    const std::uint64_t high = U64();
    return Id(high, U64());
  }
  ObjectId Object() {
    ObjectId id;
    id.owner = Named<ProcessId>();
    id.sequence = U64();
    return id;
  }
  SlotId Slot() {
    SlotId slot;
    slot.maker = Named<ProcessId>();
    slot.segment = U32();
    slot.slot = U32();
    return slot;
  }
  Location At() {
    Location location;
    location.node = Named<NodeId>();
    location.slot = Slot();
    location.generation = U64();
    location.offset = U64();
    location.bytes = U64();
    return location;
  }
  Answer Take() {
    Answer answer;
    const std::uint32_t kind = U32();
    const std::uint32_t locations = U32();
    const std::uint32_t contained = U32();
    const std::uint32_t length = U32();
    const bool has_bytes = (kind & 0x100u) != 0;
    const std::uint64_t need = kLocationBytes * std::uint64_t{locations} +
                               kHandedBytes * std::uint64_t{contained} + length;
    if ((kind & ~0x100u) > static_cast<std::uint32_t>(ValueKind::kLost))
      Fail("a kind of value nobody knows");
    if (locations > limits_.locations_max) Fail("too many locations of a value");
    if (contained > limits_.contained_max) Fail("too many references in a value");
    if (need > bytes_.size()) Fail("a value that is larger than its frame");
    if (!why_.empty()) return answer;
    answer.value.kind = static_cast<ValueKind>(kind & 0xFFu);
    const bool needs_bytes =
        answer.value.kind != ValueKind::kPending && answer.value.kind != ValueKind::kSegments;
    if (needs_bytes != has_bytes || (length != 0 && !has_bytes)) {
      Fail("a value and bytes that do not belong together");
    }
    for (std::uint32_t i = 0; i < locations; ++i) answer.value.locations.push_back(At());
    for (std::uint32_t i = 0; i < contained; ++i) {
      const ObjectId id = Object();
      answer.contained.push_back({id, U64()});
    }
    if (has_bytes)
      answer.value.bytes = std::make_shared<const std::string>(bytes_.substr(0, length));
    bytes_.remove_prefix(length);
    if ((answer.value.kind == ValueKind::kSegments) != (locations != 0))
      Fail("a value without its location");
    return answer;
  }
  void Fail(const char* why) {
    if (why_.empty()) why_ = why;
  }
  /// Empty when the body was read to its end, but for padding of zeros.
  std::string Why() {
    if (bytes_.size() >= 8) Fail("bytes after the end of a body");
    for (const char c : bytes_) {
      if (c != 0) Fail("padding that is not zero");
    }
    return why_;
  }

 private:
  template <class T>
  T Number() {
    T value = 0;
    if (bytes_.size() < sizeof(T)) {
      Fail("a body that ends too early");
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_.remove_prefix(sizeof(T));
    return value;
  }

  std::string_view bytes_;
  const ControlLimits& limits_;
  std::string why_;
};

ControlBody ReadBody(Reader& from, std::uint16_t type, bool clean) {
  switch (type) {
    case kHoldType: {
      const ObjectId id = from.Object();
      return Hold{id, from.U64()};
    }
    case kHoldOkType: {
      const ObjectId id = from.Object();
      return HoldOk{id, from.Take()};
    }
    case kGoneType:
      return Gone{from.Object()};
    case kChangedType: {
      const ObjectId id = from.Object();
      return Changed{id, from.Take()};
    }
    case kSettleType:
      return Settle{from.U64(), clean};
    case kRecallType:
      return Recall{from.U64()};
    case kDropType:
      return Drop{from.Object(), clean};
    case kFreeType: {
      const SlotId slot = from.Slot();
      return Free{slot, from.U64(), clean};
    }
    default: {
      const ObjectId id = from.Object();
      return Withdraw{id, from.At()};
    }
  }
}

bool MayBeUnclean(std::uint16_t type) {
  return type == kSettleType || type == kDropType || type == kFreeType;
}

FrameOutcome Bad(const char* what, std::string* why) {
  *why = what;
  return FrameOutcome::kBad;
}

}  // namespace

void AppendFrame(std::string& out, const ControlFrame& frame, std::uint64_t acknowledged) {
  const std::size_t begin = out.size();
  out.append(kControlHeadBytes, '\0');
  Writer to(out);
  Encode encode{to};
  std::visit(encode, frame.body);
  out.append((8 - (out.size() - begin) % 8) % 8, '\0');
  const std::size_t body = out.size() - begin - kControlHeadBytes;
  WriteHead(out.data() + begin, encode.type, encode.flags, static_cast<std::uint32_t>(body),
            frame.n, acknowledged);
}

void AppendAck(std::string& out, std::uint64_t acknowledged) {
  const std::size_t begin = out.size();
  out.append(kControlHeadBytes, '\0');
  WriteHead(out.data() + begin, kAckType, 0, 0, 0, acknowledged);
}

FrameOutcome ReadFrame(std::string_view bytes, const ControlLimits& limits, ReceivedFrame* received,
                       std::string* why) {
  received->bytes = kControlHeadBytes;
  if (bytes.size() < kControlHeadBytes) return FrameOutcome::kNeedMore;
  std::uint64_t head[4];
  std::memcpy(head, bytes.data(), sizeof(head));
  const auto type = static_cast<std::uint16_t>(head[0] >> 32);
  const auto flags = static_cast<std::uint16_t>(head[0] >> 48);
  if (static_cast<std::uint16_t>(head[0]) != kMagic) return Bad("not a frame of this project", why);
  if (static_cast<std::uint8_t>(head[0] >> 16) != kVersion)
    return Bad("a frame of another version", why);
  if (static_cast<std::uint8_t>(head[0] >> 24) != kControlFrameKind)
    return Bad("not a frame about objects", why);
  if (type >= kTypes) return Bad("a message nobody knows", why);
  if ((flags & ~kClean) != 0 || (flags != 0 && !MayBeUnclean(type)))
    return Bad("flags nobody knows", why);
  if ((head[1] >> 32) != 0) return Bad("an attachment, which this frame cannot have", why);
  if (head[1] % 8 != 0) return Bad("a body that is not whole words", why);
  if (head[1] > limits.frame_bytes_max) return Bad("a frame over the limit of size", why);
  if ((type == kAckType) != (head[2] == 0)) return Bad("a frame without its number", why);
  if (type == kAckType && head[1] != 0) return Bad("an acknowledgement with a body", why);
  received->bytes = kControlHeadBytes + static_cast<std::size_t>(head[1]);
  if (bytes.size() < received->bytes) return FrameOutcome::kNeedMore;
  received->alone = type == kAckType;
  received->acknowledged = head[3];
  received->frame.n = head[2];
  if (received->alone) return FrameOutcome::kFrame;
  Reader from(bytes.substr(kControlHeadBytes, static_cast<std::size_t>(head[1])), limits);
  received->frame.body = ReadBody(from, type, (flags & kClean) != 0);
  *why = from.Why();
  return why->empty() ? FrameOutcome::kFrame : FrameOutcome::kBad;
}

}  // namespace troupe::store
