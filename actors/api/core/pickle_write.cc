#include <cstdint>
#include <cstring>

#include "actors/api/core/pickle.h"

namespace troupe::api {
namespace {

void AppendLittle(std::uint64_t value, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

void AppendInt(std::int64_t value, std::string* out) {
  if (value >= 0 && value < 256) {
    out->push_back('K');
    AppendLittle(static_cast<std::uint64_t>(value), 1, out);
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    out->push_back('J');
    AppendLittle(static_cast<std::uint64_t>(value), 4, out);
  } else {
    out->append("\x8a\x08");
    AppendLittle(static_cast<std::uint64_t>(value), 8, out);
  }
}

void AppendFloat(double value, std::string* out) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  out->push_back('G');
  for (int i = 7; i >= 0; --i) out->push_back(static_cast<char>(bits >> (8 * i)));
}

/// `code`: of the opcodes for lengths of 1, 4 and 8 bytes.
void AppendSized(const char (&codes)[4], const std::string& bytes, std::string* out) {
  const std::uint64_t size = bytes.size();
  const int width = size < 256 ? 0 : size <= UINT32_MAX ? 1 : 2;
  out->push_back(codes[width]);
  AppendLittle(size, width == 0 ? 1 : width == 1 ? 4 : 8, out);
  out->append(bytes);
}

Status Append(const Value& value, std::size_t depth, std::string* out) {
  if (depth > kDepthMax) {
    return MakeError(ErrorCode::kInvalid, "a value with more than " + std::to_string(kDepthMax) +
                                              " lists or dicts inside each other");
  }
  switch (value.kind()) {
    case Value::Kind::kNone:
      out->push_back('N');
      break;
    case Value::Kind::kBool:
      out->push_back(value.AsBool() ? '\x88' : '\x89');
      break;
    case Value::Kind::kInt:
      AppendInt(value.AsInt(), out);
      break;
    case Value::Kind::kFloat:
      AppendFloat(value.AsFloat(), out);
      break;
    case Value::Kind::kString:
      AppendSized(
          "\x8c"
          "X\x8d",
          value.AsString(), out);
      break;
    case Value::Kind::kBytes:
      AppendSized("CB\x8e", value.AsBytes(), out);
      break;
    case Value::Kind::kList:
      out->append("](");
      for (const Value& each : value.AsList()) TROUPE_TRY(Append(each, depth + 1, out));
      out->push_back('e');
      break;
    case Value::Kind::kTuple:
      out->push_back('(');
      for (const Value& each : value.AsList()) TROUPE_TRY(Append(each, depth + 1, out));
      out->push_back('t');
      break;
    case Value::Kind::kDict:
      out->append("}(");
      for (const auto& [key, each] : value.AsDict()) {
        TROUPE_TRY(Append(key, depth + 1, out));
        TROUPE_TRY(Append(each, depth + 1, out));
      }
      out->push_back('u');
      break;
  }
  return {};
}

}  // namespace

Status WritePickle(const Value& value, std::string* out) {
  out->append("\x80\x04");
  TROUPE_TRY(Append(value, 0, out));
  out->push_back('.');
  return {};
}

namespace {

/// The head, and the function with what it is applied to: a tuple that the caller appends.
Status BeginCall(std::string_view module, std::string_view function, std::string* out) {
  out->append("\x80\x04");
  TROUPE_TRY(Append(Value::String(std::string(module)), 0, out));
  TROUPE_TRY(Append(Value::String(std::string(function)), 0, out));
  out->push_back('\x93');
  return {};
}

}  // namespace

Status WriteCallPickle(std::string_view module, std::string_view function, const Value& arguments,
                       std::string* out) {
  TROUPE_TRY(BeginCall(module, function, out));
  TROUPE_TRY(Append(arguments, 0, out));
  out->append("R.");
  return {};
}

Status WriteWorkPickle(std::string_view module, std::string_view function, const Value& argument,
                       std::string* out) {
  TROUPE_TRY(BeginCall(module, function, out));
  TROUPE_TRY(Append(argument, 0, out));
  out->append("\x85R)}\x87.");
  return {};
}

}  // namespace troupe::api
