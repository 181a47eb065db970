#include <troupe/value.h>

namespace troupe {

Error::~Error() = default;
ConnectionError::~ConnectionError() = default;
JoinError::~JoinError() = default;
PlacementError::~PlacementError() = default;
NotFoundError::~NotFoundError() = default;
AlreadyExistsError::~AlreadyExistsError() = default;
InvalidError::~InvalidError() = default;
TooLargeError::~TooLargeError() = default;
TimeoutError::~TimeoutError() = default;
CancelledError::~CancelledError() = default;
ActorDiedError::~ActorDiedError() = default;
ActorUnavailableError::~ActorUnavailableError() = default;
NotSentError::~NotSentError() = default;
MaybeExecutedError::~MaybeExecutedError() = default;
LaunchError::~LaunchError() = default;
TaskError::~TaskError() = default;

namespace {

[[noreturn]] void ThrowKind(const Value& value, const char* wanted) {
  throw InvalidError(std::string("a value of type ") + value.type_name() + ", where " + wanted +
                     " is expected");
}

}  // namespace

Value Value::Bool(bool value) {
  Value made = Int(value ? 1 : 0);
  made.kind_ = Kind::kBool;
  return made;
}

Value Value::Int(std::int64_t value) {
  Value made;
  made.kind_ = Kind::kInt;
  made.held_ = value;
  return made;
}

Value Value::Float(double value) {
  Value made;
  made.kind_ = Kind::kFloat;
  made.held_ = value;
  return made;
}

Value Value::String(std::string value) {
  Value made;
  made.kind_ = Kind::kString;
  made.held_ = std::move(value);
  return made;
}

Value Value::OfBytes(std::string data) {
  Value made = String(std::move(data));
  made.kind_ = Kind::kBytes;
  return made;
}

Value Value::OfList(List items) {
  Value made;
  made.kind_ = Kind::kList;
  made.held_ = std::move(items);
  return made;
}

Value Value::OfTuple(List items) {
  Value made = OfList(std::move(items));
  made.kind_ = Kind::kTuple;
  return made;
}

Value Value::OfDict(Dict items) {
  Value made;
  made.kind_ = Kind::kDict;
  made.held_ = std::move(items);
  return made;
}

const char* Value::type_name() const {
  switch (kind_) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return "str";
    case Kind::kBytes:
      return "bytes";
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kDict:
      return "dict";
  }
  return "?";
}

bool Value::AsBool() const {
  if (kind_ != Kind::kBool) ThrowKind(*this, "a bool");
  return std::get<std::int64_t>(held_) != 0;
}

std::int64_t Value::AsInt() const {
  if (kind_ != Kind::kInt) ThrowKind(*this, "an int");
  return std::get<std::int64_t>(held_);
}

double Value::AsFloat() const {
  if (kind_ == Kind::kInt) return static_cast<double>(std::get<std::int64_t>(held_));
  if (kind_ != Kind::kFloat) ThrowKind(*this, "a float");
  return std::get<double>(held_);
}

const std::string& Value::AsString() const {
  if (kind_ != Kind::kString) ThrowKind(*this, "a str");
  return std::get<std::string>(held_);
}

const std::string& Value::AsBytes() const {
  if (kind_ != Kind::kBytes) ThrowKind(*this, "bytes");
  return std::get<std::string>(held_);
}

const Value::List& Value::AsList() const {
  if (kind_ != Kind::kList && kind_ != Kind::kTuple) ThrowKind(*this, "a list");
  return std::get<List>(held_);
}

const Value::Dict& Value::AsDict() const {
  if (kind_ != Kind::kDict) ThrowKind(*this, "a dict");
  return std::get<Dict>(held_);
}

const Value& Value::At(std::string_view key) const {
  std::string known;
  for (const auto& [name, value] : AsDict()) {
    if (name.kind() != Kind::kString) continue;
    if (name.AsString() == key) return value;
    known += (known.empty() ? "" : ", ") + name.AsString();
  }
  throw InvalidError("a dict without the key \"" + std::string(key) + "\"; it has: " + known);
}

bool operator==(const Value& a, const Value& b) { return a.kind_ == b.kind_ && a.held_ == b.held_; }

void ThrowOutOfRange(std::int64_t value, const char* wanted) {
  throw InvalidError("the int " + std::to_string(value) + " does not fit the " + wanted +
                     " integer type that is expected");
}

void ThrowCount(std::size_t count, std::size_t wanted) {
  throw InvalidError("a list of " + std::to_string(count) + " values, where " +
                     std::to_string(wanted) + " are expected");
}

std::string_view NextName(std::string_view* names) {
  const std::size_t comma = names->find(',');
  std::string_view name = names->substr(0, comma);
  names->remove_prefix(comma == std::string_view::npos ? names->size() : comma + 1);
  while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
  while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
  return name;
}

}  // namespace troupe
