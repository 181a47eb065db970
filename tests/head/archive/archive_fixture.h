// A head with room for a few launches that are over; the test is its archive: it keeps what the
// head hands out, says that it is written, and reads it back when it is asked.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "head/core/launched/archive/archive.h"
#include "tests/head/head_fixture.h"

namespace troupe::head {

class Archive : public HeadFixture {
 protected:
  static constexpr std::size_t kEndedMax = 4;

  Archive() {
    options_.archives = true;
    options_.ended_max = kEndedMax;
    options_.repeats_us = 0;
    Boot();
    node_ = Join(1, 4);
    client_ = Open(wire::Role::kClient, Id128(9, 9), true);
  }
  LaunchId End() {
    Advance(std::chrono::seconds(1));
    const LaunchId launch = Submit(client_, 1);
    Serve(node_);
    Serve(node_);
    Finish(node_, launch, 0);
    Serve(node_);
    return launch;
  }
  std::vector<LaunchId> EndSome(int count) {
    std::vector<LaunchId> launches;
    for (int i = 0; i < count; ++i) launches.push_back(End());
    return launches;
  }
  /// The archive has written all that it was given, or could not.
  void Written(bool durable = true) {
    Archived done;
    done.durable = durable;
    for (const EndedRecord& record : archived_) done.launches.push_back(record.launch);
    if (durable) std::move(archived_.begin(), archived_.end(), std::back_inserter(kept_));
    archived_.clear();
    Feed(done);
  }
  /// The archive answers what it was asked last.
  void Answer(const std::string& error = {}) {
    ASSERT_FALSE(recalls_.empty());
    const Recall recall = recalls_.back();
    recalls_.pop_back();
    Recalled found;
    found.session = recall.session;
    found.ticket = recall.ticket;
    found.error = error;
    std::vector<EndedRecord> all = kept_;
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return std::pair(a.submitted_us, a.launch) > std::pair(b.submitted_us, b.launch);
    });
    for (const EndedRecord& record : all) {
      const bool room = recall.query.by == ArchiveQuery::By::kLaunch ||
                        found.records.size() < recall.query.limit;
      if (room && IsMeant(recall.query, record)) found.records.push_back(record);
    }
    Feed(found);
  }
  static bool IsMeant(const ArchiveQuery& query, const EndedRecord& record) {
    using By = ArchiveQuery::By;
    const std::pair place(record.submitted_us, record.launch);
    const std::pair before(query.before_us, query.before);
    if (query.by == By::kLaunch) return record.launch == query.launch;
    if (query.by == By::kRequest) return record.request == query.request;
    if (query.by == By::kPrefix)
      return record.launch.Hex().starts_with(query.text) || record.job.starts_with(query.text);
    return record.submitted_us >= query.since_us && (query.before.IsNil() || place < before);
  }
  template <class Body>
  void Ask(Body body) {
    Say(client_, std::move(body), ++asked_);
  }
  static wire::LaunchSpec SpecOfOne() {
    wire::LaunchSpec spec;
    spec.ranks = 1;
    spec.attempts_max = 1;
    spec.per_rank = Amounts(1);
    return spec;
  }
  bool InMemory(const LaunchId& launch) const {
    return core_->state().launches.count(launch) > 0;
  }

  FakeNode node_;
  SessionId client_;
  std::vector<EndedRecord> kept_;
  std::uint64_t asked_ = 5000;
};

}  // namespace troupe::head
