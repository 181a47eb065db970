// Choice of an actor's calls that may run now, where several may at once: every group has a limit
// of its own, and calls of a full group wait in line. Pure; not thread-safe.
//
//   CG-1  No more than its limit of a group's calls run at a time.
//   CG-2  A call waits only while its group is full; the calls of a group begin in the order they
//         came.
//   CG-3  Groups do not touch each other.
//
// `Job` is what a call is to its executor; who gets one from Begin or End runs it and then says
// End. How many wait is bounded by who brings them (flow_control.h, FC-3).
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::actors {

template <class Job>
class ConcurrencyGroups {
 public:
  /// Makes one group per limit, each 1 or more.
  explicit ConcurrencyGroups(const std::vector<int>& limits) {
    for (const int limit : limits) groups_.emplace_back().limit = limit;
  }

  /// The job again, to be run now; nullopt: it waits.
  std::optional<Job> Begin(std::size_t group, Job job) {
    Group& place = groups_[group];
    if (place.running >= place.limit) {
      place.waiting.push_back(std::move(job));
      return std::nullopt;
    }
    ++place.running;
    return job;
  }
  /// A job of the group is over: the one to run in its place, if any waits.
  std::optional<Job> End(std::size_t group) {
    Group& place = groups_[group];
    if (place.waiting.empty()) {
      --place.running;
      return std::nullopt;
    }
    Job next = std::move(place.waiting.front());
    place.waiting.pop_front();
    return next;
  }
  /// Takes the first waiting job that `matches` out of its line.
  template <class Matches>
  std::optional<Job> Withdraw(Matches matches) {
    for (Group& place : groups_) {
      for (auto at = place.waiting.begin(); at != place.waiting.end(); ++at) {
        if (!matches(*at)) continue;
        Job job = std::move(*at);
        place.waiting.erase(at);
        return job;
      }
    }
    return std::nullopt;
  }

  std::size_t size() const { return groups_.size(); }
  int running(std::size_t group) const { return groups_[group].running; }
  std::size_t waiting(std::size_t group) const { return groups_[group].waiting.size(); }

 private:
  struct Group {
    int limit = 1;
    int running = 0;
    std::deque<Job> waiting;
  };
  std::deque<Group> groups_;
};

}  // namespace troupe::actors
