// A head in the simulation: HeadCore, a disk that commits late, and crashes that lose what was not
// committed, or keep it without having said so.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "head/core/head_core.h"
#include "head/journal/memory_journal.h"
#include "tests/head/counting_mint.h"
#include "tests/sim/checkers.h"
#include "tests/sim/sim_net.h"

namespace troupe::sim {

class HeadHost {
 public:
  HeadHost(SimLoop& loop, const FaultPlan& plan, Checker& checker)
      : loop_(loop), plan_(plan), checker_(checker), random_(loop.random().Next()) {}

  void Start();
  /// Loses everything in memory; a prefix of what was submitted may have reached the disk.
  void Crash();
  bool up() const { return core_.has_value(); }

  /// A peer's connection; nil when the head is down. `token`: by which the peer came.
  SessionId Accept(std::shared_ptr<Link> link, wire::Role role, const Id128& subject,
                   bool local = false, const TokenId& token = TokenId());
  EndPoint EndPointOf(const SessionId& session);
  /// Returns true if the node's worker lives, for probes.
  std::function<bool(const NodeId&)> worker_lives;
  /// Returns the state of the process of a worker of this host (head::WorkerSeen).
  std::function<char(const NodeId&)> worker_state;
  static constexpr const char* kBootId = "boot-head";
  /// Options of the head's next start, but for those that the plan of faults sets.
  head::CoreOptions options;
  /// After a start of the head, and each step that journals anything.
  std::function<void(const head::State&)> after_step;
  std::function<void()> on_crash;
  std::uint64_t life() const { return life_; }
  /// True if the checker looks at the state after each step.
  bool checks_states = true;
  /// Other options than the run's; before Start.
  std::function<void(head::CoreOptions&)> tune;
  /// Records of launches that are over, once the head is tuned to have an archive.
  const std::map<LaunchId, head::EndedRecord>& archive() const { return archive_; }

  const head::HeadCore& core() const { return *core_; }
  head::MemoryJournal& disk() { return disk_; }

 private:
  void Feed(const head::Input& input);
  void Perform(head::Effects effects);
  void Commit();
  void WriteArchive(std::vector<head::EndedRecord> records);
  void ReadArchive(const head::Recall& recall);
  std::vector<RequestId> LatestMoved() const;
  void Arm(Instant due);

  SimLoop& loop_;
  const FaultPlan& plan_;
  Checker& checker_;
  Prng random_;
  head::CountingMint mint_;
  head::MemoryJournal disk_;
  std::map<LaunchId, head::EndedRecord> archive_;
  std::optional<head::HeadCore> core_;
  std::uint64_t life_ = 0;
  std::vector<head::Row> submitted_;
  std::vector<head::Row> committing_;
  std::optional<Instant> wake_at_;
  std::map<SessionId, std::shared_ptr<Link>> links_;
};

}  // namespace troupe::sim
