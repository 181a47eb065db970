// A machine with a stack and a memo, as pickle's own is. Values are nodes until the end, since a
// memo names what is still being filled.
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "actors/api/core/pickle.h"

namespace troupe::api {
namespace {

constexpr std::size_t kNodeBytes = 64;  // memory of a value besides its text, roughly
constexpr char kPlain[] =
    "\n  C++ takes None, bool, int, float, str, bytes, and lists, tuples and dicts of them";

struct Node {
  Value scalar;  // a value that is no container
  Value::Kind kind = Value::Kind::kNone;
  std::vector<std::uint32_t> items;  // items of a dict: key, value, key, value
};

class Reader {
 public:
  Reader(std::string_view bytes, std::size_t expanded_max)
      : left_(bytes), expanded_max_(expanded_max) {}

  StatusOr<Value> Read() {
    while (true) {
      unsigned char code = 0;
      if (!TakeCode(&code)) return Broken("it ends within a value");
      if (code == '.') break;
      TROUPE_TRY(Step(code));
      if (nodes_.size() > expanded_max_ / kNodeBytes) return TooLarge();
    }
    if (stack_.size() != 1 || !marks_.empty()) return Broken("it does not end with one value");
    std::size_t expanded = 0;
    return Expand(stack_[0], 0, &expanded);
  }

 private:
  static Status Broken(const std::string& why) {
    return MakeError(ErrorCode::kInvalid, "bytes that are no plain value: " + why);
  }
  Status TooLarge() const {
    return MakeError(ErrorCode::kTooLarge, "a value that takes more than " +
                                               std::to_string(expanded_max_ >> 20) +
                                               " MiB once it is read");
  }
  static Status NotPlain(const std::string& what) {
    return MakeError(ErrorCode::kInvalid, "it holds " + what + kPlain);
  }

  bool TakeCode(unsigned char* code) {
    if (left_.empty()) return false;
    *code = static_cast<unsigned char>(left_[0]);
    left_.remove_prefix(1);
    return true;
  }
  bool TakeNumber(std::size_t bytes, std::uint64_t* number) {
    if (left_.size() < bytes) return false;
    *number = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      *number |= std::uint64_t{static_cast<unsigned char>(left_[i])} << (8 * i);
    left_.remove_prefix(bytes);
    return true;
  }
  bool TakeText(std::size_t width, std::string* text) {
    std::uint64_t size = 0;
    if (!TakeNumber(width, &size) || left_.size() < size) return false;
    text->assign(left_.data(), size);
    left_.remove_prefix(size);
    return true;
  }

  void Push(Value scalar) {
    Node node;
    node.kind = scalar.kind();
    node.scalar = std::move(scalar);
    PushNode(std::move(node));
  }
  void PushNode(Node node) {
    stack_.push_back(static_cast<std::uint32_t>(nodes_.size()));
    nodes_.push_back(std::move(node));
  }
  void PushContainer(Value::Kind kind, std::vector<std::uint32_t> items = {}) {
    Node node;
    node.kind = kind;
    node.items = std::move(items);
    PushNode(std::move(node));
  }
  /// Takes everything above the last mark, or the last `count` values, off the stack.
  bool Pop(std::size_t count, std::vector<std::uint32_t>* items) {
    const std::size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() < floor + count) return false;
    items->assign(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return true;
  }
  bool PopMarked(std::vector<std::uint32_t>* items) {
    if (marks_.empty()) return false;
    const bool good = Pop(stack_.size() - marks_.back(), items);
    marks_.pop_back();
    return good;
  }
  /// The container on top of the stack gets these.
  bool Fill(Value::Kind kind, const std::vector<std::uint32_t>& items) {
    const std::size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() <= floor) return false;
    Node& node = nodes_[stack_.back()];
    if (node.kind != kind || (kind == Value::Kind::kDict && items.size() % 2 != 0)) return false;
    node.items.insert(node.items.end(), items.begin(), items.end());
    return true;
  }

  Status Step(unsigned char code);
  Status StepNumber(unsigned char code);
  Status StepText(unsigned char code);
  Status StepContainer(unsigned char code);
  Status StepMemo(unsigned char code);
  Status Refuse(unsigned char code);
  StatusOr<Value> Expand(std::uint32_t at, std::size_t depth, std::size_t* expanded);

  std::string_view left_;
  const std::size_t expanded_max_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> stack_;
  std::vector<std::size_t> marks_;
  std::vector<std::uint32_t> memo_;
};

Status Reader::Step(unsigned char code) {
  std::uint64_t ignored = 0;
  switch (code) {
    case 0x80:  // PROTO
      return TakeNumber(1, &ignored) ? Status() : Broken("it ends within its head");
    case 0x95:  // FRAME
      return TakeNumber(8, &ignored) ? Status() : Broken("it ends within a frame's head");
    case 'N':
      Push(Value());
      return {};
    case 0x88:
    case 0x89:
      Push(Value::Bool(code == 0x88));
      return {};
    case '0': {  // POP
      std::vector<std::uint32_t> popped;
      return Pop(1, &popped) ? Status() : Broken("its stack is empty");
    }
    case 'K':
    case 'M':
    case 'J':
    case 0x8a:
    case 'G':
      return StepNumber(code);
    case 'X':
    case 0x8c:
    case 0x8d:
    case 'B':
    case 'C':
    case 0x8e:
    case 0x96:
      return StepText(code);
    case 0x94:
    case 'q':
    case 'r':
    case 'h':
    case 'j':
      return StepMemo(code);
    default:
      return StepContainer(code);
  }
}

Status Reader::StepNumber(unsigned char code) {
  std::uint64_t number = 0;
  if (code == 'G') {
    if (left_.size() < 8) return Broken("it ends within a float");
    for (int i = 0; i < 8; ++i) number = number << 8 | static_cast<unsigned char>(left_[i]);
    left_.remove_prefix(8);
    double value = 0;
    std::memcpy(&value, &number, sizeof value);
    Push(Value::Float(value));
    return {};
  }
  std::size_t width = code == 'K' ? 1 : code == 'M' ? 2 : 4;
  if (code == 0x8a) {
    std::uint64_t size = 0;
    if (!TakeNumber(1, &size)) return Broken("it ends within an int");
    if (size > 8) return NotPlain("an int of more than 64 bits: send it as a str");
    width = size;
  }
  if (!TakeNumber(width, &number)) return Broken("it ends within an int");
  const bool is_signed = code == 'J' || code == 0x8a;
  if (is_signed && width != 0 && width < 8 && (number >> (8 * width - 1) & 1) != 0)
    number |= ~std::uint64_t{0} << (8 * width);
  Push(Value::Int(static_cast<std::int64_t>(number)));
  return {};
}

Status Reader::StepText(unsigned char code) {
  const bool is_short = code == 0x8c || code == 'C';
  const bool is_long = code == 0x8d || code == 0x8e || code == 0x96;
  std::string text;
  if (!TakeText(is_short ? 1 : is_long ? 8 : 4, &text)) return Broken("it ends within a text");
  const bool is_str = code == 'X' || code == 0x8c || code == 0x8d;
  Push(is_str ? Value::String(std::move(text)) : Value::OfBytes(std::move(text)));
  return {};
}

Status Reader::StepContainer(unsigned char code) {
  std::vector<std::uint32_t> items;
  bool good = true;
  switch (code) {
    case '(':
      marks_.push_back(stack_.size());
      return {};
    case ']':
      PushContainer(Value::Kind::kList);
      return {};
    case '}':
      PushContainer(Value::Kind::kDict);
      return {};
    case ')':
      PushContainer(Value::Kind::kTuple);
      return {};
    case 0x85:
    case 0x86:
    case 0x87:
      good = Pop(code - 0x84u, &items);
      PushContainer(Value::Kind::kTuple, std::move(items));
      break;
    case 't':
      good = PopMarked(&items);
      PushContainer(Value::Kind::kTuple, std::move(items));
      break;
    case 'a':
      good = Pop(1, &items) && Fill(Value::Kind::kList, items);
      break;
    case 'e':
      good = PopMarked(&items) && Fill(Value::Kind::kList, items);
      break;
    case 's':
      good = Pop(2, &items) && Fill(Value::Kind::kDict, items);
      break;
    case 'u':
      good = PopMarked(&items) && Fill(Value::Kind::kDict, items);
      break;
    default:
      return Refuse(code);
  }
  return good ? Status() : Broken("its stack has not what an opcode takes");
}

Status Reader::StepMemo(unsigned char code) {
  std::uint64_t at = memo_.size();
  const bool reads = code == 'h' || code == 'j';
  if (code != 0x94 && !TakeNumber(code == 'q' || code == 'h' ? 1 : 4, &at))
    return Broken("it ends within a memo");
  if (reads) {
    if (at >= memo_.size()) return Broken("it names what it has not");
    stack_.push_back(memo_[at]);
    return {};
  }
  if (stack_.empty() || at > memo_.size()) return Broken("its memo is out of order");
  if (at == memo_.size()) {
    memo_.push_back(stack_.back());
  } else {
    memo_[at] = stack_.back();
  }
  return {};
}

Status Reader::Refuse(unsigned char code) {
  if (code == 0x93 && stack_.size() >= 2) {  // STACK_GLOBAL
    const Node& name = nodes_[stack_.back()];
    const Node& module = nodes_[stack_[stack_.size() - 2]];
    if (name.kind == Value::Kind::kString && module.kind == Value::Kind::kString)
      return NotPlain("what Python makes by " + module.scalar.AsString() + "." +
                      name.scalar.AsString());
  }
  if (code == 'c') {  // GLOBAL: two lines
    const std::size_t first = left_.find('\n');
    const std::size_t second = first == left_.npos ? first : left_.find('\n', first + 1);
    if (second != left_.npos) {
      return NotPlain("what Python makes by " + std::string(left_.substr(0, first)) + "." +
                      std::string(left_.substr(first + 1, second - first - 1)));
    }
  }
  if (code == 0x97 || code == 0x98) return NotPlain("an array: send its bytes, or a list");
  if (code == 0x8f || code == 0x90 || code == 0x91) return NotPlain("a set: send a list");
  if (code == 0x8b) return NotPlain("an int of more than 64 bits: send it as a str");
  return NotPlain("an object of Python's (opcode " + std::to_string(code) + ")");
}

StatusOr<Value> Reader::Expand(std::uint32_t at, std::size_t depth, std::size_t* expanded) {
  if (depth > kDepthMax) {
    return NotPlain("more than " + std::to_string(kDepthMax) +
                    " lists or dicts inside each other, or one inside itself");
  }
  const Node& node = nodes_[at];
  *expanded += kNodeBytes;
  if (node.kind == Value::Kind::kString) *expanded += node.scalar.AsString().size();
  if (node.kind == Value::Kind::kBytes) *expanded += node.scalar.AsBytes().size();
  if (*expanded > expanded_max_) return TooLarge();
  if (node.kind < Value::Kind::kList) return node.scalar;
  Value::List items;
  items.reserve(node.items.size());
  for (const std::uint32_t each : node.items) {
    TROUPE_ASSIGN(Value item, Expand(each, depth + 1, expanded));
    items.push_back(std::move(item));
  }
  if (node.kind == Value::Kind::kList) return Value::OfList(std::move(items));
  if (node.kind == Value::Kind::kTuple) return Value::OfTuple(std::move(items));
  Value::Dict dict;
  for (std::size_t i = 0; i + 1 < items.size(); i += 2)
    dict.emplace_back(std::move(items[i]), std::move(items[i + 1]));
  return Value::OfDict(std::move(dict));
}

}  // namespace

StatusOr<Value> ReadPickle(std::string_view pickle, std::size_t expanded_max) {
  return Reader(pickle, expanded_max).Read();
}

}  // namespace troupe::api
