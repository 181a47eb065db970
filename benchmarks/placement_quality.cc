// How well jobs are placed: traces on 64 nodes of 8 GPUs, and small clusters against the
// brute-force optimum.
//
// The generator follows what is published of GPU clusters (Philly, 2019; Helios, 2021): most jobs
// ask for one GPU, a few for many nodes, and these few take most of the GPU time; durations are
// log-normal with a long tail, longer for larger jobs; arrivals are a Poisson process at 90 % of
// the cluster's GPU time. A job is that many ranks of one GPU each, PACK, all or nothing.
//   troupe    placement::Pass: packer, backfill, a place kept for the first that has waited for so
//             long (the head: 8 h)
//   best-fit  each rank on the node with least free GPUs; whoever fits goes
//   hybrid    Ray's policy for each rank: nodes under half use in their order, then the least used;
//             whoever fits goes
// Of the optimum: jobs come one by one to 4 nodes of 4 GPUs in 2 racks, none leaves; how many come
// before one finds no place on one node (STRICT_PACK), against the most that any placement could
// have taken.
//   placement_quality [--jobs=10000] [--seed=1]      prints one line of JSON per row
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "placement/queue.h"
#include "runtime/base/random.h"

namespace {

using namespace troupe::placement;
using troupe::NodeId;
using troupe::Prng;

constexpr std::size_t kNodes = 64;
constexpr std::size_t kRack = 16;
constexpr std::uint64_t kGpus = 8;
constexpr double kLoad = 0.9;

struct Job {
  double arrives = 0;  // seconds
  double lasts = 0;
  std::uint64_t gpus = 1;
};
/// GPUs on each node.
using Place = std::map<std::size_t, std::uint64_t>;

double Uniform(Prng& random) {
  return (static_cast<double>(random.Below(1u << 30)) + 0.5) / static_cast<double>(1u << 30);
}
double Normal(Prng& random) {
  return std::sqrt(-2 * std::log(Uniform(random))) *
         std::cos(2 * 3.14159265358979 * Uniform(random));
}

std::vector<Job> Trace(std::uint64_t seed, std::size_t count) {
  struct Share {
    unsigned permille;
    std::uint64_t gpus;
  };
  constexpr Share kShares[] = {{600, 1}, {100, 2}, {90, 4},  {140, 8},
                               {35, 16}, {20, 32}, {10, 64}, {5, 128}};
  Prng random(seed);
  std::vector<Job> jobs(count);
  double work = 0;
  for (Job& job : jobs) {
    std::uint64_t draw = random.Below(1000);
    for (const Share& share : kShares) {
      job.gpus = share.gpus;
      if (draw < share.permille) break;
      draw -= share.permille;
    }
    const double median = 600 * std::pow(static_cast<double>(job.gpus), 0.3);
    job.lasts = std::clamp(median * std::exp(1.5 * Normal(random)), 10.0, 2.0 * 86400);
    work += job.lasts * static_cast<double>(job.gpus);
  }
  const double gap = work / static_cast<double>(count) / (kLoad * kNodes * kGpus);
  double now = 0;
  for (Job& job : jobs) {
    now += -gap * std::log(Uniform(random));
    job.arrives = now;
  }
  return jobs;
}

/// Places what waits, in order; what it places is removed from the list.
class Policy {
 public:
  virtual ~Policy() = default;
  virtual void Try(double now, std::deque<std::size_t>& waiting, const std::vector<Job>& jobs,
                   const std::function<void(std::size_t, Place)>& start) = 0;
  virtual void End(const Place& place) = 0;
};

std::vector<NodeView> Nodes(std::size_t count, std::size_t rack, std::uint64_t gpus) {
  std::vector<NodeView> nodes(count);
  for (std::size_t n = 0; n < count; ++n) {
    char name[32];
    std::snprintf(name, sizeof name, "node-%04zu", n);
    nodes[n].id = NodeId(7, n + 1);
    nodes[n].name = name;
    nodes[n].total = nodes[n].free = Resources::Of({{"GPU", gpus * kUnit}});
    nodes[n].labels = {{"rack", "r" + std::to_string(n / rack)}};
  }
  return nodes;
}
Request RequestOf(std::uint64_t gpus, Strategy strategy) {
  Request request;
  request.strategy = strategy;
  if (strategy == Strategy::kStrictPack) {
    request.bundles = {Resources::Of({{"GPU", gpus * kUnit}})};
  } else {
    request.bundles.assign(gpus, Resources::Of({{"GPU", kUnit}}));
    request.level = "rack";
  }
  return request;
}
Place PlaceOf(const Plan& plan) {
  Place place;
  for (const NodeId& node : plan.nodes) ++place[node.lo - 1];
  return place;
}

class Troupe final : public Policy {
 public:
  explicit Troupe(double keeps_after)
      : keeps_after_(keeps_after), cluster_(Nodes(kNodes, kRack, kGpus)) {}
  void Try(double now, std::deque<std::size_t>& waiting, const std::vector<Job>& jobs,
           const std::function<void(std::size_t, Place)>& start) override {
    std::deque<std::size_t> left;
    Pass pass(cluster_);
    for (const std::size_t job : waiting) {
      const Request request = RequestOf(jobs[job].gpus, Strategy::kPack);
      if (const auto plan = pass.Place(request)) {
        start(job, PlaceOf(*plan));
        continue;
      }
      if (!pass.keeps() && now - jobs[job].arrives >= keeps_after_) pass.Keep(request);
      left.push_back(job);
    }
    waiting.swap(left);
  }
  void End(const Place& place) override {
    for (const auto& [node, gpus] : place) {
      Resources free = cluster_.Find(NodeId(7, node + 1))->view.free;
      free.Add(Resources::Of({{"GPU", gpus * kUnit}}));
      cluster_.SetFree(NodeId(7, node + 1), std::move(free));
    }
  }

 private:
  const double keeps_after_;  // seconds
  ClusterIndex cluster_;
};

class RankByRank final : public Policy {
 public:
  explicit RankByRank(bool hybrid) : hybrid_(hybrid), free_(kNodes, kGpus) {}
  void Try(double /*now*/, std::deque<std::size_t>& waiting, const std::vector<Job>& jobs,
           const std::function<void(std::size_t, Place)>& start) override {
    std::deque<std::size_t> left;
    std::uint64_t free = 0;
    for (const std::uint64_t gpus : free_) free += gpus;
    for (const std::size_t job : waiting) {
      if (jobs[job].gpus > free) {
        left.push_back(job);
        continue;
      }
      Place place;
      for (std::uint64_t rank = 0; rank < jobs[job].gpus; ++rank) {
        const std::size_t node = Choose();
        --free_[node];
        ++place[node];
      }
      free -= jobs[job].gpus;
      start(job, std::move(place));
    }
    waiting.swap(left);
  }
  void End(const Place& place) override {
    for (const auto& [node, gpus] : place) free_[node] += gpus;
  }

 private:
  std::size_t Choose() const {
    std::optional<std::size_t> best;
    const auto score = [&](std::size_t node) {
      if (!hybrid_) return static_cast<double>(free_[node]);
      const double used = 1 - static_cast<double>(free_[node]) / kGpus;
      return used < 0.5 ? 0 : used;
    };
    for (std::size_t node = 0; node < kNodes; ++node) {
      if (free_[node] > 0 && (!best || score(node) < score(*best))) best = node;
    }
    return *best;
  }

  const bool hybrid_;
  std::vector<std::uint64_t> free_;
};

double Percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}
double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

class Replay {
 public:
  Replay(const std::vector<Job>& jobs, Policy& policy)
      : jobs_(jobs), policy_(policy), places_(jobs.size()) {}

  void Run() {
    std::size_t next = 0;
    while (next < jobs_.size() || !ends_.empty()) {
      const bool arrival =
          next < jobs_.size() && (ends_.empty() || jobs_[next].arrives < ends_.top().first);
      now_ = arrival ? jobs_[next].arrives : ends_.top().first;
      if (arrival) {
        waiting_.push_back(next++);
      } else {
        const std::size_t job = ends_.top().second;
        ends_.pop();
        policy_.End(places_[job]);
      }
      policy_.Try(now_, waiting_, jobs_,
                  [this](std::size_t job, Place place) { Start(job, std::move(place)); });
    }
  }
  void Print(const std::string& name) const {
    std::printf(
        "{\"row\": \"trace, %s\", \"wait_mean_s\": %.0f, \"gang_wait_mean_s\": %.0f, "
        "\"gang_wait_p99_s\": %.0f, "
        "\"gang_wait_worst_s\": %.0f, \"nodes_over_least_percent\": %.1f, "
        "\"gangs_over_racks_percent\": %.1f}\n",
        name.c_str(), Mean(waits_), Mean(gang_waits_), Percentile(gang_waits_, 0.99),
        Percentile(gang_waits_, 1), 100 * (nodes_used_ / nodes_least_ - 1),
        100 * split_ / in_one_rack_);
  }

 private:
  void Start(std::size_t job, Place place) {
    const Job& each = jobs_[job];
    waits_.push_back(now_ - each.arrives);
    ends_.emplace(now_ + each.lasts, job);
    if (each.gpus > 1) {
      if (each.gpus > kGpus) gang_waits_.push_back(now_ - each.arrives);
      nodes_used_ += static_cast<double>(place.size());
      nodes_least_ += static_cast<double>((each.gpus + kGpus - 1) / kGpus);
      if (each.gpus <= kGpus * kRack) {
        in_one_rack_ += 1;
        split_ += place.begin()->first / kRack != place.rbegin()->first / kRack ? 1 : 0;
      }
    }
    places_[job] = std::move(place);
  }

  using End = std::pair<double, std::size_t>;
  const std::vector<Job>& jobs_;
  Policy& policy_;
  std::vector<Place> places_;
  std::deque<std::size_t> waiting_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  double now_ = 0;
  std::vector<double> waits_;
  std::vector<double> gang_waits_;
  double nodes_used_ = 0;
  double nodes_least_ = 0;
  double in_one_rack_ = 0;
  double split_ = 0;
};

// The most of the first jobs that some placement on single nodes can take.
bool AllFit(std::vector<std::uint64_t>& free, const std::vector<std::uint64_t>& jobs,
            std::size_t from) {
  if (from == jobs.size()) return true;
  for (std::size_t node = 0; node < free.size(); ++node) {
    if (free[node] < jobs[from]) continue;
    if (std::find(free.begin(), free.begin() + static_cast<std::ptrdiff_t>(node), free[node]) !=
        free.begin() + static_cast<std::ptrdiff_t>(node)) {
      continue;  // as one before
    }
    free[node] -= jobs[from];
    const bool fits = AllFit(free, jobs, from + 1);
    free[node] += jobs[from];
    if (fits) return true;
  }
  return false;
}

// Jobs of 1 to 4 GPUs, until one finds no place.
template <class Choose>
std::size_t Taken(const std::vector<std::uint64_t>& jobs, Choose choose) {
  std::vector<std::uint64_t> free(4, 4);
  std::size_t taken = 0;
  for (const std::uint64_t gpus : jobs) {
    const std::optional<std::size_t> node = choose(free, gpus);
    if (!node) break;
    free[*node] -= gpus;
    ++taken;
  }
  return taken;
}

void AgainstTheOptimum(std::uint64_t seed) {
  Prng random(seed);
  double optimum = 0;
  double sums[3] = {};
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::uint64_t> jobs;
    for (int i = 0; i < 16; ++i) jobs.push_back(1 + random.Below(4));
    std::vector<std::uint64_t> first;
    for (const std::uint64_t gpus : jobs) {
      first.push_back(gpus);
      std::vector<std::uint64_t> free(4, 4);
      std::vector<std::uint64_t> sorted = first;
      std::sort(sorted.rbegin(), sorted.rend());
      if (!AllFit(free, sorted, 0)) break;
      optimum += 1;
    }
    ClusterIndex cluster(Nodes(4, 2, 4));
    sums[0] += static_cast<double>(
        Taken(jobs, [&](const auto&, std::uint64_t gpus) -> std::optional<std::size_t> {
          const Request request = RequestOf(gpus, Strategy::kStrictPack);
          const auto plan = Pack(cluster, request);
          if (!plan) return std::nullopt;
          TakePlan(cluster, request, *plan);
          return plan->nodes[0].lo - 1;
        }));
    const auto least = [](auto score) {
      return [score](const std::vector<std::uint64_t>& free, std::uint64_t gpus) {
        std::optional<std::size_t> best;
        for (std::size_t node = 0; node < free.size(); ++node) {
          if (free[node] >= gpus && (!best || score(free[node]) < score(free[*best]))) best = node;
        }
        return best;
      };
    };
    sums[1] += static_cast<double>(
        Taken(jobs, least([](std::uint64_t free) { return static_cast<double>(free); })));
    sums[2] += static_cast<double>(Taken(jobs, least([](std::uint64_t free) {
                                           return free > 2 ? 0.0 : 4.0 - static_cast<double>(free);
                                         })));
  }
  const char* const names[] = {"troupe", "best-fit", "hybrid"};
  for (int i = 0; i < 3; ++i) {
    std::printf("{\"row\": \"of the optimum, %s\", \"percent\": %.1f}\n", names[i],
                100 * sums[i] / optimum);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = 10'000;
  std::uint64_t seed = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--jobs=", 0) == 0) count = std::strtoull(argument.c_str() + 7, nullptr, 10);
    if (argument.rfind("--seed=", 0) == 0) seed = std::strtoull(argument.c_str() + 7, nullptr, 10);
  }
  const std::vector<Job> jobs = Trace(seed, count);
  const auto run = [&jobs](const std::string& name, Policy& policy) {
    Replay replay(jobs, policy);
    replay.Run();
    replay.Print(name);
  };
  for (const double minutes : {0.0, 60.0, 240.0, 480.0, 720.0, 1e9}) {
    Troupe troupe(60 * minutes);
    run("troupe, a place kept " +
            (minutes > 1e6 ? "never"
                           : "after " + std::to_string(static_cast<int>(minutes / 60)) + " h"),
        troupe);
  }
  RankByRank best_fit(false);
  run("best-fit", best_fit);
  RankByRank hybrid(true);
  run("hybrid", hybrid);
  AgainstTheOptimum(seed);
  return 0;
}
