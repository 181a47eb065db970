// A program without Python that drives a cluster: `actors SCENARIO [ARGUMENT...]`. It prints what
// it has seen, a line each; what is not as it should be ends it with code 1.
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "actors.h"

namespace {

using namespace std::chrono_literals;
using Arguments = std::vector<std::string>;

void Say(const std::string& line) { std::cout << line << std::endl; }

/// Returns the text of the exception of type E that `action` throws.
template <class E>
std::string Thrown(const std::function<void()>& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  throw std::runtime_error("nothing was thrown");
}

void Calls(const Arguments&) {
  const auto counter = troupe::Create<Counter>({.num_cpus = 1, .env = {{"SHELF", "oak"}}}, 5);
  std::vector<troupe::Ref<int>> refs;
  for (int i = 0; i < 100; ++i) refs.push_back(counter.Call<&Counter::Add>(1));
  Say("last " + std::to_string(troupe::Get(refs, 60s).back()));
  const auto [ready, rest] = troupe::Wait(refs, refs.size(), 60s);
  Say("ready " + std::to_string(ready.size()) + " of " + std::to_string(refs.size()));
  Say("variable " + counter.Call<&Counter::Variable>("SHELF").Get());
  const auto echo = troupe::Create<Echo>();
  const Point moved = echo.Call<&Echo::Moved>(Point{1, 2}, 0.5).Get();
  Say("moved " + std::to_string(moved.x) + " " + std::to_string(moved.y));
  const auto large = echo.Call<&Echo::Large>(20'000'000).Get();
  Say("large " + std::to_string(large.data.size()));
  Say("back " + std::to_string(echo.Call<&Echo::SizeOf>(large).Get()));
}

void Errors(const Arguments&) {
  const auto counter = troupe::Create<Counter>({}, 0);
  Say(Thrown<troupe::TaskError>([&] { counter.Call<&Counter::Throw>("out_of_range").Get(); }));
  Say(Thrown<troupe::TaskError>([&] { counter.Call("Ad", 1).GetValue(); }));
  Say(Thrown<troupe::TaskError>([&] { counter.Call("Add", "one").GetValue(); }));
  Say(Thrown<troupe::ActorDiedError>([&] { counter.Call<&Counter::Crash>().Get(); }));
  const auto broken = troupe::Create<Broken>({}, "throw");
  Say(Thrown<troupe::ActorDiedError>([&] { broken.Call<&Broken::Never>().Get(); }));
  Say(Thrown<troupe::PlacementError>([] { troupe::Create<Counter>({.num_cpus = 1000}, 0); }));
  Say(Thrown<troupe::NotFoundError>([] { troupe::GetActor("nobody"); }));
}

/// An actor that is killed is started again as often as it may be.
void Restarts(const Arguments&) {
  const auto counter = troupe::Create<Counter>({.max_restarts = 1}, 5);
  counter.Call<&Counter::Add>(1).Get();
  const int pid = counter.Call<&Counter::Pid>().Get();
  ::kill(pid, SIGKILL);
  // A call may still be under way to the process that is gone.
  int total = 0;
  for (int i = 0; i < 1000 && total == 0; ++i) {
    try {
      total = counter.Call<&Counter::Add>(10).Get(60s);
    } catch (const troupe::ActorUnavailableError&) {
    }
  }
  Say("anew " + std::to_string(total) +
      (counter.Call<&Counter::Pid>().Get() != pid ? " elsewhere" : ""));
  ::kill(counter.Call<&Counter::Pid>().Get(), SIGKILL);
  std::string death;
  while (death.empty()) {
    try {
      counter.Call<&Counter::Total>().Get(60s);
    } catch (const troupe::ActorUnavailableError&) {
    } catch (const troupe::ActorDiedError& error) {
      death = error.what();
    }
  }
  Say(death);
}

/// Calls the actor of that name, of Python.
void Names(const Arguments& names) {
  const auto mine = troupe::Create<Counter>({.name = "cpp_counter"}, 1);
  Say("mine " +
      std::to_string(troupe::GetActor<Counter>("cpp_counter").Call<&Counter::Add>(1).Get()));
  const troupe::AnyActor other = troupe::GetActor(names.at(0), names.at(1));
  const std::map<std::string, std::vector<double>> rows{{"a", {1, 2}}, {"b", {0.5}}};
  for (const auto& [name, sum] : other.Call("sums", rows).Get<std::map<std::string, double>>())
    Say("sum " + name + " " + std::to_string(sum));
  Say(Thrown<troupe::TaskError>([&] { other.Call("fail", "a text").GetValue(); }));
  Say(Thrown<troupe::InvalidError>([&] { other.Call("strange").GetValue(); }));
  troupe::Kill(mine);
  Say(Thrown<troupe::ActorDiedError>([&] { mine.Call<&Counter::Total>().Get(); }));
}

void Groups(const Arguments&) {
  const auto group =
      troupe::CreatePlacementGroup({{{"CPU", 1}}, {{"CPU", 2}}}, {.strategy = "PACK"});
  group.Ready(60s);
  Say("nodes " + group.Nodes()[0] + " " + group.Nodes()[1]);
  const auto inside =
      troupe::Create<Counter>({.num_cpus = 2, .placement_group = group, .bundle = 1}, 3);
  Say("inside " + std::to_string(inside.Call<&Counter::Total>().Get()));
  const auto full = troupe::CreatePlacementGroup({{{"CPU", 8}}});
  Say(Thrown<troupe::TimeoutError>([&] { full.Ready(10ms); }));
  troupe::RemovePlacementGroup(full);
  Say(Thrown<troupe::PlacementError>([] { troupe::CreatePlacementGroup({{{"CPU", 1000}}}); }));
  troupe::RemovePlacementGroup(group);
  Say(Thrown<troupe::ActorDiedError>([&] {
    while (true) inside.Call<&Counter::Total>().Get();
  }));
}

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

void WriteRank(const std::string& folder, double factor) {
  const double product = factor * std::stod(Variable("RANK"));
  std::ofstream(folder + "/rank-" + Variable("RANK")) << Variable("WORLD_SIZE") << " " << product;
}
TROUPE_FUNCTION(WriteRank);

void FailOnRank(int rank) {
  if (std::to_string(rank) == Variable("RANK")) throw std::out_of_range("no such batch");
}
TROUPE_FUNCTION(FailOnRank);

/// Functions and commands on ranks; `folder` is for what they write.
void Launches(const Arguments& folder) {
  const auto written =
      troupe::Submit<&WriteRank>({.processes = 2, .cpus_per_rank = 1}, folder.at(0), 2.5);
  written.Wait(120s);
  for (const char* rank : {"0", "1"}) {
    std::ifstream file(folder.at(0) + "/rank-" + rank);
    std::string line;
    std::getline(file, line);
    Say(std::string("rank ") + rank + ": " + line);
  }
  Say(Thrown<troupe::LaunchError>(
      [] { troupe::Submit<&FailOnRank>({.processes = 2}, 1).Wait(120s); }));
  Say(Thrown<troupe::LaunchError>([] {
    troupe::SubmitCommand({"/bin/sh", "-c", "echo words of $RANK >&2; exit 7"}, {.processes = 1})
        .Wait(120s);
  }));
  const auto endless = troupe::SubmitCommand({"/bin/sleep", "1000"}, {.processes = 1});
  Say(Thrown<troupe::TimeoutError>([&] { endless.Wait(10ms); }));
  endless.Cancel();
  Say(Thrown<troupe::LaunchError>([&] { endless.Wait(60s); }));
  Say(Thrown<troupe::InvalidError>([] { troupe::SubmitCommand({"/bin/true"}, {}); }));
  Say(Thrown<troupe::PlacementError>(
      [] { troupe::SubmitCommand({"/bin/true"}, {.processes = 1000}); }));
}

/// Collectives of three actors, the death of one in the midst, and the group formed again. With an
/// argument they are on two nodes.
void Training(const Arguments& spread) {
  std::vector<troupe::ActorOptions> places(3);
  if (!spread.empty()) {
    const auto nodes =
        troupe::CreatePlacementGroup({{{"CPU", 2}}, {{"CPU", 2}}}, {.strategy = "STRICT_SPREAD"});
    nodes.Ready(60s);
    for (int i = 0; i < 3; ++i)
      places[i] = {.num_cpus = 1, .placement_group = nodes, .bundle = i % 2};
  }
  std::vector<troupe::Actor<Member>> members;
  for (int i = 0; i < 3; ++i) members.push_back(troupe::Create<Member>(places[i], double(1 << i)));
  const auto all = [&] { return std::vector<troupe::AnyActor>(members.begin(), members.end()); };
  const auto sums = [&] {
    std::vector<troupe::Ref<std::vector<double>>> refs;
    for (const auto& each : members) refs.push_back(each.Call<&Member::Summed>("dp", 300'000));
    return refs;
  };
  troupe::train::FormGroup("dp", all(), 60s);
  Say("rank " + std::to_string(members[2].Call<&Member::Rank>("dp").Get()));
  for (const auto& sum : troupe::Get(sums(), 60s))
    Say("sum " + std::to_string(sum[0]) + " " + std::to_string(sum[1]));
  std::vector<troupe::Ref<std::vector<std::int64_t>>> gathers;
  std::vector<troupe::Ref<float>> firsts;
  for (const auto& each : members) gathers.push_back(each.Call<&Member::Gathered>("dp"));
  for (const auto& each : members) firsts.push_back(each.Call<&Member::FromFirst>("dp"));
  std::string line = "gathered";
  const auto gathered = troupe::Get(gathers, 60s);
  for (const std::int64_t each : gathered[1]) line += " " + std::to_string(each);
  Say(line);
  Say("first " + std::to_string(troupe::Get(firsts, 60s)[2]));
  Say(Thrown<troupe::TaskError>([&] { members[0].Call<&Member::Rank>("other").Get(); }));

  const int pid = members[1].Call<&Member::Pid>().Get();
  const auto first = members[0].Call<&Member::Summed>("dp", 10);  // waits for the others
  ::kill(pid, SIGKILL);
  Say(Thrown<troupe::TaskError>([&] { first.Get(60s); }));
  members[1] = troupe::Create<Member>(places[1], 8.0);
  troupe::train::FormGroup("dp", all(), 60s);
  Say("anew " + std::to_string(troupe::Get(sums(), 60s)[0][0]));
}

/// An actor makes one of its own; a session that is ended and begun anew has nothing of the former.
void Sessions(const Arguments&) {
  Say("hatched " + std::to_string(troupe::Create<Nest>().Call<&Nest::Hatch>(6).Get(60s)));
  const auto counter = troupe::Create<Counter>({}, 1);
  const auto late = counter.Call<&Counter::Total>();
  late.Get(60s);
  Say(Thrown<troupe::ConnectionError>([] { troupe::Init(); }));
  troupe::Shutdown();
  troupe::Shutdown();
  Say(Thrown<troupe::ActorUnavailableError>([&] { counter.Call<&Counter::Total>().Get(60s); }));
  Say(Thrown<troupe::ConnectionError>([] { troupe::Create<Counter>({}, 1); }));
  Say("kept " + std::to_string(late.Get()));
  troupe::Init();
  Say("again " + std::to_string(troupe::Create<Counter>({}, 8).Call<&Counter::Add>(1).Get(60s)));
  Say("whole " + std::to_string(int(troupe::ClusterResources().at("CPU"))));
}

/// Calls before a word on stdin, and after it; meanwhile the head is another one.
void Returns(const Arguments&) {
  const auto counter = troupe::Create<Counter>({.max_restarts = 1}, 1);
  const auto group = troupe::CreatePlacementGroup({{{"CPU", 1}}});
  group.Ready(60s);
  Say("before " + std::to_string(counter.Call<&Counter::Add>(1).Get(60s)));
  std::string word;
  std::getline(std::cin, word);
  Say("after " + std::to_string(counter.Call<&Counter::Add>(1).Get(60s)));
  Say("new " + std::to_string(troupe::Create<Counter>({}, 5).Call<&Counter::Add>(1).Get(60s)));
  ::kill(counter.Call<&Counter::Pid>().Get(60s), SIGKILL);  // the new head reports it
  int total = 0;
  while (total == 0) {
    try {
      total = counter.Call<&Counter::Add>(10).Get(60s);
    } catch (const troupe::ActorUnavailableError&) {
    }
  }
  Say("anew " + std::to_string(total));
  troupe::RemovePlacementGroup(group);
}

/// Dropping the last handle ends an actor; what this program has made ends with it.
void Handles(const Arguments&) {
  {
    const auto dropped = troupe::Create<Counter>({.num_cpus = 8}, 1);
  }
  const auto second = troupe::Create<Counter>({.num_cpus = 8}, 2);  // has room once that is gone
  Say("second " + std::to_string(second.Call<&Counter::Total>().Get(60s)));
  troupe::Create<Counter>({.name = "stays", .namespace_ = "cpp", .detached = true}, 40)
      .Call<&Counter::Add>(2)
      .Get();
}

const std::map<std::string, void (*)(const Arguments&)> kScenarios = {
    {"calls", Calls},       {"errors", Errors},   {"restarts", Restarts}, {"names", Names},
    {"groups", Groups},     {"handles", Handles}, {"launches", Launches}, {"training", Training},
    {"sessions", Sessions}, {"returns", Returns}};

}  // namespace

int main(int argc, char** argv) {
  try {
    troupe::Init();
    kScenarios.at(argc > 1 ? argv[1] : "")(Arguments(argv + 2, argv + argc));
  } catch (const std::exception& error) {
    std::cerr << "it ended with: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
