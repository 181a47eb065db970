#include "actors/core/call/object_frame.h"

#include <cstring>

#include "runtime/store/core/control_frame.h"

namespace troupe::actors {
namespace {

constexpr std::uint16_t kObjectMagic = 0x5254;
constexpr std::uint8_t kObjectVersion = 1;

struct ObjectWire {
  std::uint16_t magic = kObjectMagic;
  std::uint8_t version = kObjectVersion;
  std::uint8_t kind = kObjectFrameKind;
  std::uint16_t word = 0;
  std::uint16_t zero = 0;
  std::uint32_t body_bytes = kObjectFrameBytes - 16;
  std::uint32_t zero2 = 0;
  std::uint64_t a[2] = {0, 0};
  std::uint64_t b[2] = {0, 0};
  std::uint64_t x = 0;
  std::uint64_t y = 0;
};
static_assert(sizeof(ObjectWire) == kObjectFrameBytes);

}  // namespace

void AppendObjectFrame(std::string& out, const ObjectFrame& frame) {
  ObjectWire wire;
  wire.word = static_cast<std::uint16_t>(frame.word);
  wire.a[0] = frame.a.hi;
  wire.a[1] = frame.a.lo;
  wire.b[0] = frame.b.hi;
  wire.b[1] = frame.b.lo;
  wire.x = frame.x;
  wire.y = frame.y;
  out.append(reinterpret_cast<const char*>(&wire), sizeof wire);
}

ObjectParse ReadObjectFrame(std::string_view bytes, ObjectFrame* frame, std::string* why) {
  if (bytes.size() < 4) return ObjectParse::kNeedMore;
  const auto kind = static_cast<std::uint8_t>(bytes[3]);
  if (kind == store::kControlFrameKind) return ObjectParse::kControl;
  if (bytes.size() < kObjectFrameBytes && kind == kObjectFrameKind) return ObjectParse::kNeedMore;
  ObjectWire wire;
  if (kind == kObjectFrameKind) std::memcpy(&wire, bytes.data(), sizeof wire);
  const ObjectWire good;
  if (kind != kObjectFrameKind || wire.magic != good.magic || wire.version != good.version ||
      wire.body_bytes != good.body_bytes || wire.zero != 0 || wire.zero2 != 0) {
    *why = "bytes that are no frame of an object link";
    return ObjectParse::kBad;
  }
  if (wire.word < 1 || wire.word > static_cast<std::uint16_t>(ObjectWord::kLentOn)) {
    *why = "an object link's frame of type " + std::to_string(wire.word);
    return ObjectParse::kBad;
  }
  frame->word = static_cast<ObjectWord>(wire.word);
  frame->a = ProcessId(wire.a[0], wire.a[1]);
  frame->b = ProcessId(wire.b[0], wire.b[1]);
  frame->x = wire.x;
  frame->y = wire.y;
  return ObjectParse::kFrame;
}

}  // namespace troupe::actors
