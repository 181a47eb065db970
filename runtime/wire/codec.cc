#include "runtime/wire/codec.h"

#include <absl/strings/str_format.h>

#include <array>
#include <cstring>

#include "runtime/wire/codec_internal.h"
#include "runtime/wire/limits.h"

namespace troupe::wire {
namespace {

Status DefectOf(const kj::Exception& error, const char* what) {
  const kj::StringPtr description = error.getDescription();
  return MakeError(ErrorCode::kInvalid, absl::StrFormat("%s: %s", what, description.cStr()));
}

// The segment table is read before Cap'n Proto allocates for it.
Status CheckSegmentTable(std::string_view bytes) {
  if (bytes.size() < 8 || bytes.size() % 8 != 0) {
    return MakeError(ErrorCode::kInvalid,
                     absl::StrFormat("a control message of %d bytes is cut short", bytes.size()));
  }
  std::uint32_t segments_less_one = 0;
  std::memcpy(&segments_less_one, bytes.data(), sizeof segments_less_one);
  if (segments_less_one >= kSegmentsMax) {
    return MakeError(ErrorCode::kInvalid, "a control message has too many segments");
  }
  return absl::OkStatus();
}

// The scratch space in which messages are built. Cap'n Proto leaves it zero again. A piece of the
// heap of this size, asked for with every message, would have the allocator sort what was freed
// each time.
thread_local std::array<capnp::word, 1024> scratch{};

// `Plain` is Message or Event, `Wire` its Cap'n Proto type; `what` is how an error calls it.
// `before` and `behind`: bytes to be left around it.
template <class Wire, class Plain>
StatusOr<std::string> Encode(const Plain& plain, const char* what, std::size_t before = 0,
                             std::size_t behind = 0) {
  try {
    capnp::MallocMessageBuilder builder(kj::arrayPtr(scratch.data(), scratch.size()));
    Write(plain, builder.initRoot<Wire>());
    const std::size_t size = capnp::computeSerializedSizeInWords(builder) * sizeof(capnp::word);
    if (size > kBodyBytesMax) {
      return MakeError(ErrorCode::kTooLarge,
                       absl::StrFormat("a %s %s takes %d bytes; the limit is %d",
                                       std::string(NameOf(plain.body)), what, size, kBodyBytesMax));
    }
    std::string bytes(before + size + behind, '\0');
    kj::ArrayOutputStream stream(
        kj::arrayPtr(reinterpret_cast<kj::byte*>(bytes.data() + before), size));
    capnp::writeMessage(stream, builder);
    return bytes;
  } catch (const kj::Exception& error) {
    return DefectOf(error, absl::StrFormat("a %s cannot be encoded", what).c_str());
  }
}

template <class Wire, class Plain>
StatusOr<Plain> Decode(std::string_view bytes, const char* what) {
  TROUPE_TRY(CheckSegmentTable(bytes));
  kj::Array<capnp::word> copy;
  const auto* words = reinterpret_cast<const capnp::word*>(bytes.data());
  const std::size_t count = bytes.size() / sizeof(capnp::word);
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(capnp::word) != 0) {
    copy = kj::heapArray<capnp::word>(count);
    std::memcpy(copy.begin(), bytes.data(), bytes.size());
    words = copy.begin();
  }
  capnp::ReaderOptions options;
  options.traversalLimitInWords = 2 * count + 512;
  options.nestingLimit = kNestingMax;
  try {
    capnp::FlatArrayMessageReader reader(kj::arrayPtr(words, count), options);
    Plain plain;
    Read(plain, reader.getRoot<Wire>());
    return plain;
  } catch (const kj::Exception& error) {
    return DefectOf(error, absl::StrFormat("a %s cannot be decoded", what).c_str());
  }
}

}  // namespace

StatusOr<std::string> EncodeBody(const Message& message, std::size_t before, std::size_t behind) {
  return Encode<schema::Message>(message, "control message", before, behind);
}

StatusOr<Message> DecodeBody(std::string_view bytes) {
  return Decode<schema::Message, Message>(bytes, "control message");
}

StatusOr<std::string> EncodeEvent(const Event& event) {
  return Encode<schema::Event>(event, "journal event");
}

StatusOr<Event> DecodeEvent(std::string_view bytes) {
  return Decode<schema::Event, Event>(bytes, "journal event");
}

}  // namespace troupe::wire
