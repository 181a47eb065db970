// The answers of the tasks that tasks of this process started, by the one that started them.
//
// Takes no lock, that of the pools guards it. Owns no reference: a task takes its answer out before
// it lets go of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "actors/slots/answer.h"

namespace troupe::actors {

class TaskChildren {
 public:
  /// `parent` 0: none started it, and nothing is kept.
  void Add(std::uint64_t parent, Answer* answer) {
    if (parent != 0) started_.emplace(parent, answer);
  }
  void Remove(std::uint64_t parent, const Answer* answer) {
    if (parent == 0) return;
    const auto [first, last] = started_.equal_range(parent);
    const auto found =
        std::find_if(first, last, [&](const auto& each) { return each.second == answer; });
    if (found != last) started_.erase(found);
  }
  std::vector<AnswerRef> Of(std::uint64_t parent) const {
    std::vector<AnswerRef> answers;
    const auto [first, last] = started_.equal_range(parent);
    for (auto each = first; each != last; ++each)
      answers.push_back(AnswerRef::Another(each->second));
    return answers;
  }

 private:
  std::unordered_multimap<std::uint64_t, Answer*> started_;
};

}  // namespace troupe::actors
