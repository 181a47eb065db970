#include "placement/preempt.h"

#include <algorithm>
#include <tuple>

#include "placement/packer.h"
#include "placement/trial.h"

namespace troupe::placement {
namespace {

class Chooser {
 public:
  Chooser(ClusterIndex& cluster, const Request& request)
      : cluster_(cluster), request_(request), trial_(cluster) {}

  void End(const Running& group) {
    for (const auto& [node, amount] : group.holds) {
      if (const Host* host = cluster_.Find(node)) {
        Resources free = host->view.free;
        free.Add(amount);
        trial_.SetFree(node, std::move(free));
      }
    }
  }
  void Spare(const Running& group) {
    for (const auto& [node, amount] : group.holds) cluster_.Take(node, amount);
  }
  std::optional<Plan> Try() { return Pack(cluster_, request_); }

 private:
  ClusterIndex& cluster_;
  const Request& request_;
  Trial trial_;
};

}  // namespace

std::optional<Preemption> WhomToPreempt(ClusterIndex& cluster, const Request& request, int priority,
                                        const std::vector<Running>& running) {
  std::vector<const Running*> candidates;
  for (const Running& group : running) {
    if (!group.ending && group.may_be_ended && group.priority < priority)
      candidates.push_back(&group);
  }
  std::sort(candidates.begin(), candidates.end(), [](const Running* a, const Running* b) {
    return std::tie(a->priority, b->order) < std::tie(b->priority, a->order);
  });
  Chooser chooser(cluster, request);
  Preemption result;
  std::optional<Plan> plan = chooser.Try();
  if (plan) return Preemption{{}, std::move(*plan), true};
  for (const Running& group : running) {
    if (group.ending) chooser.End(group);
  }
  plan = chooser.Try();
  std::size_t ended = 0;
  for (std::size_t step = 1; !plan && ended < candidates.size(); step *= 2) {
    const std::size_t until = std::min(candidates.size(), ended + step);
    for (; ended < until; ++ended) chooser.End(*candidates[ended]);
    plan = chooser.Try();
  }
  if (!plan) return std::nullopt;
  for (std::size_t i = ended; i-- > 0;) {
    chooser.Spare(*candidates[i]);
    if (auto without = chooser.Try()) {
      plan = std::move(without);
    } else {
      chooser.End(*candidates[i]);
      result.victims.push_back(candidates[i]->group);
    }
  }
  std::reverse(result.victims.begin(), result.victims.end());
  result.plan = std::move(*plan);
  return result;
}

}  // namespace troupe::placement
