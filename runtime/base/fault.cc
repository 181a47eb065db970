#include "runtime/base/fault.h"

#ifdef TROUPE_WITH_FAULTS

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "runtime/base/mutex.h"

namespace troupe {
namespace {

enum class Action { kKill, kStop, kDrop, kFull, kFail, kStall };

struct Rule {
  std::string name;  // "*": any place
  Action action = Action::kKill;
  std::uint64_t first = 1;
  std::uint64_t last = 1;
  std::uint64_t passed = 0;
};

[[noreturn]] void Unreadable(const std::string& text) {
  std::fprintf(stderr, "TROUPE_FAULTS: '%s' is not of the form name=action@first-last\n",
               text.c_str());
  std::_Exit(2);
}

Rule ParseRule(const std::string& text) {
  constexpr const char* kActions[] = {"kill", "stop", "drop", "full", "fail", "stall"};
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) Unreadable(text);
  const std::size_t at = text.find('@', equals);
  const std::string action =
      text.substr(equals + 1, at == std::string::npos ? at : at - equals - 1);
  Rule rule;
  rule.name = text.substr(0, equals);
  constexpr int kKinds = std::size(kActions);
  int known = 0;
  while (known < kKinds && action != kActions[known]) ++known;
  if (known == kKinds) Unreadable(text);
  rule.action = static_cast<Action>(known);
  if (at == std::string::npos) return rule;
  char* end = nullptr;
  rule.first = rule.last = std::strtoull(text.c_str() + at + 1, &end, 10);
  if (*end == '-') {
    rule.last = end[1] == '\0' ? std::numeric_limits<std::uint64_t>::max()
                               : std::strtoull(end + 1, &end, 10);
    if (rule.last == std::numeric_limits<std::uint64_t>::max()) return rule;
  }
  if (rule.first == 0 || *end != '\0') Unreadable(text);
  return rule;
}

void Stall() {
  const char* const fifo = std::getenv("TROUPE_STALL");
  const int opened = fifo == nullptr ? -1 : open(fifo, O_RDONLY | O_CLOEXEC);
  if (opened >= 0) close(opened);
}

class Rules {
 public:
  Rules() {
    const char* given = std::getenv("TROUPE_FAULTS");
    std::string text = given == nullptr ? "" : given;
    while (!text.empty()) {
      const std::size_t comma = text.find(',');
      rules_.push_back(ParseRule(text.substr(0, comma)));
      text = comma == std::string::npos ? "" : text.substr(comma + 1);
    }
    none_ = rules_.empty();
  }
  bool empty() const { return none_; }
  Fault Pass(std::string_view name) {
    const MutexLock lock(mutex_);
    Fault due = Fault::kNone;
    for (Rule& rule : rules_) {
      if (rule.name != "*" && rule.name != name) continue;
      ++rule.passed;
      if (rule.passed >= rule.first && rule.passed <= rule.last && due == Fault::kNone)
        due = Do(rule, name);
    }
    return due;
  }

 private:
  static Fault Do(const Rule& rule, std::string_view name) {
    std::fprintf(stderr, "fault at %.*s, passage %llu\n", static_cast<int>(name.size()),
                 name.data(), static_cast<unsigned long long>(rule.passed));
    switch (rule.action) {
      case Action::kKill:
        std::raise(SIGKILL);
        break;
      case Action::kStop:
        std::raise(SIGSTOP);
        break;
      case Action::kDrop:
        return Fault::kDrop;
      case Action::kFull:
        return Fault::kFull;
      case Action::kFail:
        return Fault::kFail;
      case Action::kStall:
        Stall();
        break;
    }
    return Fault::kNone;
  }

  bool none_ = true;
  Mutex mutex_;
  std::vector<Rule> rules_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

Fault FaultAt(std::string_view name) {
  static Rules rules;
  return rules.empty() ? Fault::kNone : rules.Pass(name);
}

}  // namespace troupe

#endif  // TROUPE_WITH_FAULTS
