#include "actors/api/value_codec.h"

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "actors/api/core/pickle.h"
#include "actors/core/call/value_form.h"
#include "actors/core/remote/value_refs.h"
#include "actors/objects/object_store.h"
#include "runtime/store/copy.h"

namespace troupe::api {
namespace {

namespace form = actors::form;

void AppendScalar(form::Tag tag, const void* bytes, std::string* out) {
  out->push_back(static_cast<char>(tag));
  out->append(static_cast<const char*>(bytes), form::kScalarBytes);
}

Status AppendSized(form::Tag tag, std::string_view bytes, std::string* out) {
  if (bytes.size() > UINT32_MAX)
    return MakeError(ErrorCode::kTooLarge, "a value of " + std::to_string(bytes.size()) +
                                               " bytes cannot be sent: 4 GiB is the limit");
  const auto length = static_cast<std::uint32_t>(bytes.size());
  out->push_back(static_cast<char>(tag));
  out->append(reinterpret_cast<const char*>(&length), sizeof length);
  out->append(bytes);
  return {};
}

Status Malformed() { return MakeError(ErrorCode::kInternal, "bytes that are no value"); }

StatusOr<Value> DecodeLarge(std::string_view bytes) {
  form::LargeHead head;
  if (bytes.size() < sizeof head) return Malformed();
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.magic != form::kLargeMagic) return Malformed();
  const std::uint64_t table = std::uint64_t{head.buffers} * sizeof(form::LargeEntry);
  if (bytes.size() - sizeof head < table || bytes.size() - sizeof head - table < head.head_bytes)
    return Malformed();
  std::string_view value = bytes.substr(sizeof head + table, head.head_bytes);
  form::Tag tag;
  std::string_view content;
  std::size_t total = 0;
  if (!form::Split(value, &tag, &content, &total) || tag >= form::kObject) return Malformed();
  return DecodeValue(&value);
}

/// The value behind the names of references.
bool SplitRefs(std::string_view content, std::uint32_t* count, std::string_view* value) {
  if (content.size() < sizeof *count) return false;
  std::memcpy(count, content.data(), sizeof *count);
  content.remove_prefix(sizeof *count);
  if (content.size() / actors::kObjectIdBytes < *count) return false;
  *value = content.substr(*count * actors::kObjectIdBytes);
  return !value->empty();
}

Status RefsInside() {
  return MakeError(ErrorCode::kInvalid,
                   "it holds an ObjectRef or an actor's handle, which C++ does not take inside a "
                   "value\n  pass the ref as an argument of its own, where it is replaced by its "
                   "value, and the actor's name for a handle");
}

}  // namespace

StatusOr<std::string> EncodeValue(const Value& value) {
  std::string out;
  switch (value.kind()) {
    case Value::Kind::kNone:
      out.push_back(static_cast<char>(form::kNone));
      return out;
    case Value::Kind::kBool:
      out.push_back(static_cast<char>(value.AsBool() ? form::kTrue : form::kFalse));
      return out;
    case Value::Kind::kInt: {
      const std::int64_t number = value.AsInt();
      AppendScalar(form::kInt, &number, &out);
      return out;
    }
    case Value::Kind::kFloat: {
      const double number = value.AsFloat();
      AppendScalar(form::kFloat, &number, &out);
      return out;
    }
    case Value::Kind::kString:
      TROUPE_TRY(AppendSized(form::kStr, value.AsString(), &out));
      return out;
    case Value::Kind::kBytes:
      TROUPE_TRY(AppendSized(form::kBytes, value.AsBytes(), &out));
      return out;
    default:
      break;
  }
  std::string pickle;
  TROUPE_TRY(WritePickle(value, &pickle));
  TROUPE_TRY(AppendSized(form::kPickle, pickle, &out));
  return out;
}

StatusOr<Value> DecodeValue(std::string_view* bytes) {
  form::Tag tag;
  std::string_view content;
  std::size_t total = 0;
  if (!form::Split(*bytes, &tag, &content, &total)) return Malformed();
  bytes->remove_prefix(total);
  switch (tag) {
    case form::kNone:
      return Value();
    case form::kTrue:
    case form::kFalse:
      return Value::Bool(tag == form::kTrue);
    case form::kInt: {
      std::int64_t number = 0;
      std::memcpy(&number, content.data(), sizeof number);
      return Value::Int(number);
    }
    case form::kFloat: {
      double number = 0;
      std::memcpy(&number, content.data(), sizeof number);
      return Value::Float(number);
    }
    case form::kBytes:
      return Value::OfBytes(std::string(content));
    case form::kStr:
      return Value::String(std::string(content));
    case form::kPickle:
      return ReadPickle(content);
    case form::kObject: {
      const std::optional<store::ObjectId> id = actors::ReadObjectId(content);
      if (!id) return Malformed();
      return ValueOfObject(*id);
    }
    case form::kLarge:
      return DecodeLarge(content);
    case form::kRefs: {
      std::uint32_t count = 0;
      std::string_view value;
      if (!SplitRefs(content, &count, &value)) return Malformed();
      if (count != 0) return RefsInside();
      return DecodeValue(&value);
    }
  }
  return Malformed();
}

StatusOr<Value> ValueOfObject(const store::ObjectId& id) {
  actors::ObjectStore* const store = actors::ObjectStore::Current();
  if (store == nullptr)
    return MakeError(ErrorCode::kTooLarge,
                     "no descriptor is left for large values (raise `ulimit -n`)");
  if (!store->Inside(id).empty()) return RefsInside();
  TROUPE_ASSIGN(const actors::ObjectView view, store->View(id));
  return DecodeLarge(view.bytes());
}

bool FindNamed(std::string_view values, int count, Named* named) {
  for (int i = 0; i < count; ++i) {
    form::Tag tag;
    std::string_view content;
    std::size_t total = 0;
    if (!form::Split(values, &tag, &content, &total)) return false;
    values.remove_prefix(total);
    std::uint32_t refs = 0;
    std::string_view inner;
    if (tag == form::kRefs) {
      if (!SplitRefs(content, &refs, &inner)) return false;
      named->refs = named->refs || refs != 0;
      if (!form::Split(inner, &tag, &content, &total)) return false;
    }
    if (tag != form::kObject) continue;
    const std::optional<store::ObjectId> id = actors::ReadObjectId(content);
    if (!id) return false;
    named->values.push_back(*id);
  }
  return true;
}

std::optional<store::ObjectId> TakeObjectName(std::string_view* bytes) {
  form::Tag tag;
  std::string_view content;
  std::size_t total = 0;
  if (!form::Split(*bytes, &tag, &content, &total) || tag != form::kObject) return std::nullopt;
  bytes->remove_prefix(total);
  return actors::ReadObjectId(content);
}

void AppendObjectName(actors::ByteBuffer& out, const store::ObjectId& id) {
  std::string bytes;
  AppendSized(form::kObject, actors::NameBytes(id), &bytes).IgnoreError();
  out.Append(bytes.data(), bytes.size());
}

StatusOr<store::Writing> WriteLarge(std::string_view encoded) {
  actors::ObjectStore* const store = actors::ObjectStore::Current();
  if (store == nullptr)
    return MakeError(ErrorCode::kTooLarge,
                     "no descriptor is left for large values (raise `ulimit -n`)");
  form::LargeHead head;
  head.head_bytes = encoded.size();
  TROUPE_ASSIGN(const store::Writing writing, store->pool().Begin(sizeof head + encoded.size()));
  std::memcpy(writing.data, &head, sizeof head);
  store::CopyBytes(writing.data + sizeof head, encoded.data(), encoded.size());
  return writing;
}

}  // namespace troupe::api
