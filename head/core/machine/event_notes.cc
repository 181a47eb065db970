#include "head/core/machine/event_notes.h"

#include <cstdio>
#include <string>
#include <utility>

namespace troupe::head {
namespace {

class Notes {
 public:
  Notes(State& state, std::uint64_t wall_us) : s_(state) { note_.wall_us = wall_us; }

  void operator()(const wire::HeadStarted& e) {
    Add(wire::Severity::kInfo, wire::EventSource::kHead,
        "the head started (incarnation " + std::to_string(e.incarnation) + ", version " +
            e.version + ")");
  }
  void operator()(const wire::NodeJoined& e) {
    note_.node = e.registration.node;
    Add(wire::Severity::kInfo, wire::EventSource::kNode, "node " + e.name + " joined");
  }
  void operator()(const wire::NodeDied& e) {
    const auto node = s_.nodes.find(e.node);
    if (node == s_.nodes.end() || node->second.dead) return;
    note_.node = e.node;
    const auto severity = node->second.draining ? wire::Severity::kInfo : wire::Severity::kError;
    Add(severity, wire::EventSource::kNode, "node " + node->second.name + " is gone: " + e.cause);
  }
  void operator()(const wire::NodeDrained& e) {
    const auto node = s_.nodes.find(e.node);
    if (node == s_.nodes.end()) return;
    note_.node = e.node;
    Add(wire::Severity::kInfo, wire::EventSource::kNode,
        "node " + node->second.name + " takes nothing new" +
            (e.reason.empty() ? "" : ": " + e.reason));
  }
  void operator()(const wire::ActorDied& e) {
    const auto found = s_.actors.find(e.actor);
    if (found == s_.actors.end() || found->second.incarnation != e.incarnation ||
        !found->second.live())
      return;
    const Actor& actor = found->second;
    const bool failed =
        e.failure.exit_code != 0 || e.failure.signal != 0 || !e.failure.exception_type.empty();
    if (actor.doomed || actor.unwanted || !failed) return;
    note_.actor = e.actor;
    note_.node = e.failure.node;
    note_.launch = actor.launch;
    std::string name = actor.spec.leased ? "a process for tasks" : actor.spec.class_name;
    if (!actor.spec.name.empty()) name += " '" + actor.spec.name + "'";
    Add(e.restart ? wire::Severity::kWarning : wire::Severity::kError, wire::EventSource::kActor,
        name + (e.restart ? " ended and is started again: " : " ended: ") + e.failure.cause);
  }
  void operator()(const wire::EpochFailed& e) {
    const Launch* launch = Find(e.launch);
    if (launch == nullptr) return;
    note_.node = e.failure.node;
    Add(e.preempted ? wire::Severity::kInfo : wire::Severity::kWarning, wire::EventSource::kLaunch,
        "launch " + launch->spec.name +
            (e.preempted ? " made room for another: " : ", an attempt failed: ") + e.failure.cause);
  }
  void operator()(const wire::MarkerWritten& e) {
    const Launch* launch = Find(e.marker.launch);
    if (launch == nullptr) return;
    const bool failed = e.marker.outcome == wire::Outcome::kFailed;
    const char* how = failed                                          ? " failed"
                      : e.marker.outcome == wire::Outcome::kCancelled ? " was cancelled"
                                                                      : " succeeded";
    Add(failed ? wire::Severity::kError : wire::Severity::kInfo, wire::EventSource::kLaunch,
        "launch " + launch->spec.name + how +
            (e.marker.cause.empty() ? "" : ": " + e.marker.cause));
  }
  void operator()(const wire::TimePassed& e) {
    if (s_.seen_wall_us == 0) return;
    const std::int64_t by_wall = static_cast<std::int64_t>(e.wall_us - s_.seen_wall_us);
    const std::int64_t jump = by_wall - static_cast<std::int64_t>(e.lived_us - s_.lived_us);
    if (jump < static_cast<std::int64_t>(kJumpUs) && -jump < static_cast<std::int64_t>(kJumpUs))
      return;
    char text[300];
    std::snprintf(text, sizeof text,
                  "the head was away, or the clock of its host was set: it reads %.1f hours %s "
                  "than this head has seen pass; records of "
                  "launches and tokens are kept for the time that it runs",
                  static_cast<double>(jump < 0 ? -jump : jump) / 3.6e9, jump < 0 ? "less" : "more");
    Add(wire::Severity::kWarning, wire::EventSource::kHead, text);
  }
  template <class Other>
  void operator()(const Other&) {}

 private:
  const Launch* Find(const LaunchId& id) {
    note_.launch = id;
    const auto found = s_.launches.find(id);
    return found == s_.launches.end() ? nullptr : &found->second;
  }
  void Add(wire::Severity severity, wire::EventSource source, std::string message) {
    note_.severity = severity;
    note_.source = source;
    note_.message = std::move(message);
    s_.history.Add(std::move(note_));
  }

  State& s_;
  wire::ClusterEvent note_;
};

}  // namespace

void NoteEvent(State& state, const wire::EventBody& event, std::uint64_t wall_us) {
  wire::Visit(Notes(state, wall_us), event);
}

}  // namespace troupe::head
