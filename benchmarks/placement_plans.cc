// The cost of placement's pure decisions against the size of the cluster.
//
// Nodes of 8 GPUs, 128 CPUs and 2 TB of memory in nvlink domains of 8, racks of 32 and blocks of
// 256, about two thirds in use by groups of 1 to 8 GPUs that come and go in random order.
//   one       PACK of one bundle of 1 to 8 GPUs: plan it, take it, give an old one back
//   gang      512 bundles of one GPU in one block, required: the plan alone
//   anywhere  512 bundles of one GPU, PACK, no level: the plan alone
//   spread    STRICT_SPREAD of 64 whole nodes: the plan alone
//   ahead     where a gang of half the cluster that must wait will go
//   refusal   the text for that gang
//
// Time is the thread's own (CPU time): a decision waits for nothing, and what else the machine does
// is not its cost.
//
//   placement_plans --nodes=1000        prints one line of JSON per row
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "placement/explain.h"
#include "placement/packer.h"
#include "placement/queue.h"
#include "runtime/base/random.h"

namespace {

using namespace troupe::placement;
using troupe::NodeId;
using troupe::Prng;

Resources Share(std::uint64_t gpus) {
  return Resources::Of({{"GPU", gpus * kUnit},
                        {"CPU", gpus * 16 * kUnit},
                        {"memory", gpus * 250'000'000'000 * kUnit}});
}

std::vector<NodeView> Nodes(std::size_t count) {
  std::vector<NodeView> nodes;
  for (std::size_t i = 0; i < count; ++i) {
    NodeView node;
    node.id = NodeId(7, i + 1);
    char name[32];
    std::snprintf(name, sizeof name, "node-%06zu", i);
    node.name = name;
    node.total = node.free = Share(8);
    const auto number = [](std::size_t value) {
      char text[16];
      std::snprintf(text, sizeof text, "%05zu", value);
      return std::string(text);
    };
    node.labels = {{"block", number(i / 256)},
                   {"rack", number(i / 32)},
                   {"nvlink_domain", number(i / 8)},
                   {"gpu_type", "H100"},
                   {"hostname", name}};
    nodes.push_back(std::move(node));
  }
  return nodes;
}

class Figures {
 public:
  template <class Work>
  void Time(Work work) {
    const double start = Now();
    work();
    micros_.push_back(Now() - start);
  }
  void Print(const char* name, std::size_t nodes) {
    double sum = 0;
    for (const double value : micros_) sum += value;
    std::sort(micros_.begin(), micros_.end());
    const auto at = [&](double part) {
      return micros_[static_cast<std::size_t>(part * static_cast<double>(micros_.size() - 1))];
    };
    std::printf(
        "{\"row\": \"%s, %zu nodes\", \"per_s\": %.0f, \"median_us\": %.2f, \"p99_us\": %.2f, "
        "\"rounds\": %zu}\n",
        name, nodes, 1e6 * static_cast<double>(micros_.size()) / sum, at(0.5), at(0.99),
        micros_.size());
    std::fflush(stdout);
  }

 private:
  static double Now() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
  }
  std::vector<double> micros_;
};

Request Ask(std::size_t bundles, std::uint64_t gpus, Strategy strategy = Strategy::kPack) {
  Request request;
  request.bundles.assign(bundles, Share(gpus));
  request.strategy = strategy;
  return request;
}

struct Held {
  NodeId node;
  Resources amount;
};

void GiveBack(ClusterIndex& cluster, std::vector<Held>& held, Prng& random) {
  std::swap(held[random.Below(held.size())], held.back());
  Resources free = cluster.Find(held.back().node)->view.free;
  free.Add(held.back().amount);
  cluster.SetFree(held.back().node, std::move(free));
  held.pop_back();
}

bool One(ClusterIndex& cluster, std::vector<Held>& held, Prng& random) {
  const Request request = Ask(1, 1 + random.Below(8));
  const auto plan = Pack(cluster, request);
  if (!plan) return false;
  TakePlan(cluster, request, *plan);
  held.push_back({plan->nodes[0], request.bundles[0]});
  return true;
}

// In use at random places, as after a day: PACK alone would leave no holes.
void Fill(ClusterIndex& cluster, std::vector<Held>& held, std::size_t count, Prng& random) {
  for (std::size_t i = 0; i < count; ++i) {
    if (random.Chance(250)) continue;
    Resources amount = Share(1 + random.Below(8));
    const NodeId node(7, i + 1);
    cluster.Take(node, amount);
    held.push_back({node, std::move(amount)});
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = 1000;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--nodes=", 0) == 0)
      count = std::strtoull(argument.c_str() + 8, nullptr, 10);
  }
  Prng random(1);
  ClusterIndex cluster(Nodes(count));
  std::vector<Held> held;
  Fill(cluster, held, count, random);

  Figures one;
  for (int i = 0; i < 100'000; ++i) {
    one.Time([&] {
      while (!One(cluster, held, random)) GiveBack(cluster, held, random);
      GiveBack(cluster, held, random);
    });
  }
  one.Print("one", count);

  const std::size_t rounds = 1'000;
  std::size_t placed = 0;
  const auto plans = [&](const char* name, const Request& request) {
    Figures figures;
    placed = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
      while (!One(cluster, held, random)) GiveBack(cluster, held, random);
      GiveBack(cluster, held, random);
      figures.Time([&] { placed += Pack(cluster, request) ? 1 : 0; });
    }
    figures.Print((std::string(name) + (placed == rounds ? ""
                                        : placed == 0    ? " (none fits)"
                                                         : " (some fit)"))
                      .c_str(),
                  count);
  };
  Request gang = Ask(512, 1);
  gang.level = "block";
  gang.level_required = true;
  plans("gang", gang);
  plans("anywhere", Ask(512, 1));
  plans("spread", Ask(64, 8, Strategy::kStrictSpread));

  const Request half = Ask(std::max<std::size_t>(1, count / 2), 8);
  Figures ahead;
  for (int i = 0; i < 20; ++i) ahead.Time([&] { placed += PlanAhead(cluster, half) ? 1 : 0; });
  ahead.Print("ahead", count);
  Figures refusal;
  for (int i = 0; i < 20; ++i) refusal.Time([&] { placed += Explain(cluster, half).text.size(); });
  refusal.Print("refusal", count);
  return placed == 0 ? 1 : 0;
}
