#include "tests/sim/head_host.h"

#include <algorithm>
#include <utility>

#include "head/core/machine/snapshot.h"
#include "runtime/wire/frame.h"

namespace troupe::sim {

void HeadHost::Start() {
  ++life_;
  options.boot_id = kBootId;
  if (plan_.preempts) options.preemption = head::Preemption::kRestartable;
  options.keep_after = plan_.preempts ? Duration::zero() : plan_.keep_after;
  if (tune) tune(options);
  options.moved = LatestMoved();
  core_.emplace(options, head::Seams{random_, mint_});
  std::uint64_t last = 0;
  const Status replayed = disk_.Replay([&](const head::Row& row) {
    core_->Replay(row);
    last = row.sequence;
  });
  checker_.Expect(replayed.ok(), "the journal cannot be read");
  checker_.OnReplay(last);
  Perform(core_->Start(loop_.Now(), loop_.WallTimeUs()));
  if (after_step) after_step(core_->state());
}

void HeadHost::Crash() {
  if (!core_) return;
  std::uint64_t starting = 0;
  for (const auto& [id, actor] : core_->state().actors) {
    starting += actor.state == wire::ActorState::kStarting && actor.restarts > 0 ? 1 : 0;
  }
  checker_.OnCrashWhileStarting(starting);
  core_.reset();
  ++life_;
  if (on_crash) on_crash();
  // A commit under way may have reached the disk; what waited behind it did not.
  if (!committing_.empty() && loop_.random().Chance(500)) {
    for (const head::Row& row : committing_) checker_.OnDurable(row);
    checker_.Expect(disk_.Append(committing_).ok(), "the disk failed");
  }
  committing_.clear();
  submitted_.clear();
  wake_at_.reset();
  auto links = std::move(links_);
  links_.clear();
  for (auto& [session, link] : links) link->Reset();
}

SessionId HeadHost::Accept(std::shared_ptr<Link> link, wire::Role role, const Id128& subject,
                           bool local, const TokenId& token) {
  if (!core_) return SessionId();
  const SessionId session = SessionId::Random(random_);
  links_[session] = std::move(link);
  head::SessionOpened opened;
  opened.session = session;
  opened.role = role;
  opened.subject = subject;
  opened.local = local;
  opened.token = token;
  Feed(opened);
  return session;
}

EndPoint HeadHost::EndPointOf(const SessionId& session) {
  const std::uint64_t life = life_;
  EndPoint end;
  end.on_message = [this, life, session](wire::Message message) {
    if (life != life_) return;
    head::MessageFrom input;
    input.session = session;
    if (const auto* relay = wire::GetIf<wire::Relay>(&message.body)) {
      StatusOr<wire::Message> inner = wire::DecodeFrame(message.attachment);
      checker_.Expect(inner.ok(), "a relayed frame cannot be read");
      if (!inner.ok()) return;
      input.relay = *relay;
      input.message = *std::move(inner);
    } else {
      input.message = std::move(message);
    }
    Feed(input);
  };
  end.on_closed = [this, life, session] {
    if (life != life_) return;
    links_.erase(session);
    Feed(head::SessionClosed{session});
  };
  return end;
}

void HeadHost::Feed(const head::Input& input) {
  if (!core_) return;
  if (const auto* from = std::get_if<head::MessageFrom>(&input)) {
    if (!wire::Holds<wire::Heartbeat>(from->message.body)) {
      checker_.Note("head hears", wire::NameOf(from->message.body));
    }
  }
  head::Effects effects = core_->Handle(input, loop_.Now(), loop_.WallTimeUs());
  const bool changed = !effects.append.empty();
  Perform(std::move(effects));
  if (checks_states) checker_.OnState(core_->state());
  if (after_step && changed) after_step(core_->state());
}

void HeadHost::Perform(head::Effects effects) {
  for (head::Row& row : effects.append) submitted_.push_back(std::move(row));
  if (committing_.empty() && !submitted_.empty()) Commit();
  for (head::Send& send : effects.sends) {
    checker_.OnSent(send.message);
    const auto link = links_.find(send.to.session);
    if (link == links_.end()) continue;
    if (!send.to.process.IsNil()) {
      wire::Message down;
      wire::RelayDown body;
      body.process = send.to.process;
      down.body = body;
      down.attachment = *wire::EncodeFrame(send.message);
      link->second->ToPeer(std::move(down));
    } else {
      link->second->ToPeer(std::move(send.message));
    }
  }
  for (const head::Close& close : effects.closes) {
    const auto link = links_.find(close.session);
    if (link != links_.end()) link->second->Reset();
  }
  for (const head::Probe& probe : effects.probes) {
    const std::uint64_t life = life_;
    loop_.In(std::chrono::milliseconds(2), "probe", [this, life, probe] {
      if (life != life_) return;
      Feed(head::ProbeDone{probe.node, probe.incarnation, !worker_lives(probe.node)});
    });
  }
  for (const head::Look& look : effects.looks) {
    const std::uint64_t life = life_;
    loop_.In(Duration::zero(), "look", [this, life, look] {
      if (life == life_) Feed(head::WorkerSeen{look.node, look.question, worker_state(look.node)});
    });
  }
  if (!effects.archive.empty()) WriteArchive(std::move(effects.archive));
  for (const head::Recall& recall : effects.recalls) ReadArchive(recall);
  std::erase_if(archive_, [&](const auto& each) {
    return each.second.lived_us < effects.archived_until_us;
  });
  if (effects.wake_at) Arm(*effects.wake_at);
  if (effects.plan_soon) {
    const std::uint64_t life = life_;
    loop_.In(loop_.Between(Duration::zero(), std::chrono::microseconds(200)), "plan", [this, life] {
      if (life == life_) Feed(head::PlanNow());
    });
  }
}

void HeadHost::Commit() {
  committing_ = std::move(submitted_);
  submitted_.clear();
  const std::uint64_t life = life_;
  loop_.In(loop_.Between(std::chrono::microseconds(100), plan_.commit_most), "commit",
           [this, life] {
             if (life != life_) return;
             for (const head::Row& row : committing_) checker_.OnDurable(row);
             checker_.Expect(disk_.Append(committing_).ok(), "the disk failed");
             const std::uint64_t sequence = committing_.back().sequence;
             committing_.clear();
             Feed(head::Appended{sequence});
             // In quiet moments, a snapshot now and then takes the place of all rows.
             if (core_ && committing_.empty() && submitted_.empty() &&
                 random_.Chance(plan_.snapshot_permille)) {
               checker_.Expect(
                   disk_.Snapshot(core_->last_sequence(), head::SnapshotOf(core_->state())).ok(),
                   "the disk failed");
             }
             if (core_ && committing_.empty() && !submitted_.empty()) Commit();
           });
}

void HeadHost::WriteArchive(std::vector<head::EndedRecord> records) {
  loop_.In(Ms(2), "archive", [this, life = life_, records = std::move(records)] {
    if (life != life_) return;
    head::Archived done;
    done.durable = true;
    for (const head::EndedRecord& record : records) {
      archive_[record.launch] = record;
      done.launches.push_back(record.launch);
    }
    Feed(done);
  });
}

std::vector<RequestId> HeadHost::LatestMoved() const {
  std::uint64_t latest_us = 0;
  for (const auto& [launch, record] : archive_) latest_us = std::max(latest_us, record.lived_us);
  std::vector<RequestId> moved;
  for (const auto& [launch, record] : archive_) {
    const bool late = record.lived_us + options.repeats_us > latest_us;
    if (late && !record.request.IsNil()) moved.push_back(record.request);
  }
  return moved;
}

void HeadHost::ReadArchive(const head::Recall& recall) {
  loop_.In(Ms(1), "recall", [this, life = life_, recall] {
    if (life != life_) return;
    head::Recalled found;
    found.session = recall.session;
    found.ticket = recall.ticket;
    const head::ArchiveQuery& query = recall.query;
    const auto known = std::find_if(archive_.begin(), archive_.end(), [&](const auto& each) {
      return query.by == head::ArchiveQuery::By::kRequest ? each.second.request == query.request
                                                          : each.first == query.launch;
    });
    if (known != archive_.end()) found.records.push_back(known->second);
    Feed(found);
  });
}

void HeadHost::Arm(Instant due) {
  wake_at_ = due;
  const std::uint64_t life = life_;
  loop_.At(due, "head timer", [this, life, due] {
    if (life == life_ && wake_at_ == due) Feed(head::Tick());
  });
}

}  // namespace troupe::sim
