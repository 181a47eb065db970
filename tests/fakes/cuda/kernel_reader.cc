#include "tests/fakes/cuda/kernel_reader.h"

namespace troupe::fakes {
namespace {

using Kind = FakeKernel::Kind;
using Word = std::uint64_t;

struct Meaning {
  Kind kind = Kind::kCompute;
  FakeKernel::Compute compute = nullptr;
};

constexpr Word kLow = 0xffffffffu;

Word Same(Word a, Word) { return a; }
Word Low(Word a, Word) { return a & kLow; }
Word Sum(Word a, Word b) { return a + b; }

/// Registers of 32 bits hold them with zeros above.
const std::map<std::string, Meaning>& Known() {
  static const auto* const known = new std::map<std::string, Meaning>{
      {"ld.param.u64", {Kind::kParameter, {}}},
      {"ld.global.s32", {Kind::kLoadWord, {}}},
      {"ld.global.u8", {Kind::kLoadByte, {}}},
      {"red.global.add.u64", {Kind::kAddInMemory, {}}},
      {"bra", {Kind::kBranch, {}}},
      {"ret", {Kind::kReturn, {}}},
      {"cvta.to.global.u64", {Kind::kCompute, Same}},
      {"mov.u32", {Kind::kCompute, Low}},
      {"mov.b32", {Kind::kCompute, Low}},
      {"mov.u64", {Kind::kCompute, Same}},
      {"cvt.u64.u32", {Kind::kCompute, Low}},
      {"cvt.u32.u64", {Kind::kCompute, Low}},
      {"cvt.s64.s32",
       {Kind::kCompute, [](Word a, Word) { return Word(std::int64_t(std::int32_t(a))); }}},
      {"add.s32", {Kind::kCompute, [](Word a, Word b) { return (a + b) & kLow; }}},
      {"add.s64", {Kind::kCompute, Sum}},
      {"sub.s64", {Kind::kCompute, [](Word a, Word b) { return a - b; }}},
      {"mul.lo.s64", {Kind::kCompute, [](Word a, Word b) { return a * b; }}},
      {"mul.wide.u32", {Kind::kCompute, [](Word a, Word b) { return (a & kLow) * (b & kLow); }}},
      {"shl.b32", {Kind::kCompute, [](Word a, Word b) { return b > 31 ? 0 : (a << b) & kLow; }}},
      {"shl.b64", {Kind::kCompute, [](Word a, Word b) { return b > 63 ? 0 : a << b; }}},
      {"shr.u64", {Kind::kCompute, [](Word a, Word b) { return b > 63 ? 0 : a >> b; }}},
      {"and.b64", {Kind::kCompute, [](Word a, Word b) { return a & b; }}},
      {"or.b32", {Kind::kCompute, [](Word a, Word b) { return a | b; }}},
      {"xor.b64", {Kind::kCompute, [](Word a, Word b) { return a ^ b; }}},
      {"setp.ge.u64", {Kind::kCompute, [](Word a, Word b) { return Word(a >= b); }}},
      {"setp.lt.u64", {Kind::kCompute, [](Word a, Word b) { return Word(a < b); }}},
      {"setp.lt.u32",
       {Kind::kCompute, [](Word a, Word b) { return Word((a & kLow) < (b & kLow)); }}},
      {"setp.ne.s64", {Kind::kCompute, [](Word a, Word b) { return Word(a != b); }}},
      {"setp.eq.s64", {Kind::kCompute, [](Word a, Word b) { return Word(a == b); }}},
  };
  return *known;
}

std::string Bare(std::string word) {
  std::erase_if(word,
                [](char each) { return each == ',' || each == ';' || each == '[' || each == ']'; });
  return word;
}

}  // namespace

KernelReader::KernelReader(FakeKernel& into, std::string name)
    : into_(into), name_(std::move(name)) {
  for (const char* given : FakeKernel::kGiven) PlaceOf(given);
}

bool KernelReader::Read(const std::string& ptx) {
  if (!ptx.starts_with(".version ") || ptx.find("\n.target sm_") == std::string::npos) return false;
  std::istringstream lines(ptx);
  for (std::string line; std::getline(lines, line);) {
    if (!ReadLine(line)) return false;
  }
  for (const auto& [at, label] : branches_) {
    const auto found = labels_.find(label);
    if (found == labels_.end()) return false;
    into_.code_[static_cast<std::size_t>(at)].target = found->second;
  }
  into_.registers_ = static_cast<int>(places_.size());
  return !into_.code_.empty() && into_.code_.back().kind == Kind::kReturn;
}

bool KernelReader::ReadLine(const std::string& line) {
  std::istringstream words(line);
  std::string first;
  words >> first;
  if (first == ".visible") {
    inside_ = line.find(".entry " + name_ + "(") != std::string::npos;
  } else if (inside_ && first == ".param") {
    ++into_.parameters_;
  } else if (first.ends_with(':')) {
    labels_[first.substr(0, first.size() - 1)] = static_cast<int>(into_.code_.size());
  } else if (inside_ && !first.empty() && first.find_first_of(".{})") != 0) {
    return ReadInstruction(std::move(words), first);
  }
  return true;
}

bool KernelReader::ReadInstruction(std::istringstream words, std::string name) {
  FakeKernel::Instruction made;
  if (name.starts_with('@')) {
    made.guard = PlaceOf(name.substr(1));
    words >> name;
  }
  const auto meaning = Known().find(Bare(name));
  if (meaning == Known().end()) return false;
  made.kind = meaning->second.kind;
  made.compute = meaning->second.compute;
  for (std::string word; words >> word;) {
    if (made.kind == Kind::kBranch) {
      branches_[static_cast<int>(into_.code_.size())] = Bare(word);
    } else {
      made.operands.push_back(OperandOf(Bare(word)));
    }
  }
  into_.code_.push_back(std::move(made));
  return true;
}

FakeKernel::Operand KernelReader::OperandOf(const std::string& text) {
  if (text.starts_with('%')) return {PlaceOf(text), 0};
  const std::string parameter = name_ + "_param_";
  if (text.starts_with(parameter)) return {-1, std::stoull(text.substr(parameter.size()))};
  return {-1, static_cast<std::uint64_t>(std::stoll(text))};
}

int KernelReader::PlaceOf(const std::string& register_name) {
  return places_.try_emplace(register_name, static_cast<int>(places_.size())).first->second;
}

}  // namespace troupe::fakes
