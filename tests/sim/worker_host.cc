#include "tests/sim/worker_host.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "runtime/wire/frame.h"

namespace troupe::sim {
namespace {

/// `pid`: of this worker, and of none before it.
worker::NodeFacts FactsOf(std::size_t index, bool local, std::int32_t pid) {
  worker::NodeFacts facts;
  facts.pid = pid;
  facts.name = index < 26 ? "node-" + std::string(1, static_cast<char>('a' + index))
                          : "node-" + std::to_string(index);
  facts.host = facts.name;
  facts.boot_id = local ? HeadHost::kBootId : "boot-" + facts.name;
  facts.listen_host = "10.0.0." + std::to_string(index + 1);
  facts.listen_port = 7000;
  facts.socket_dir = "/s";
  facts.result_dir = "/r";
  facts.head_address = "10.0.0.9:6400";
  facts.python_version = "3.11";
  facts.capacity = {{worker::kCpu, 4 * worker::kWhole}, {worker::kGpu, 2 * worker::kWhole}};
  facts.gpu_ids = {0, 1};
  facts.choose_interface = [](const std::vector<std::string>&) {
    return worker::Interface{"eth0", "10.0.0.1"};
  };
  facts.sha256 = [](std::string_view bytes) { return "sha:" + std::string(bytes); };
  return facts;
}

}  // namespace

WorkerHost::WorkerHost(SimLoop& loop, const FaultPlan& plan, Checker& checker, HeadHost& head,
                       std::size_t index, bool local)
    : loop_(loop),
      plan_(plan),
      checker_(checker),
      head_(head),
      index_(index),
      local_(local),
      id_(7, index + 1),
      random_(loop.random().Next()) {}

void WorkerHost::Start() {
  ++life_;
  const auto pid = static_cast<std::int32_t>(1000 * (index_ + 1) + life_);
  core_.emplace(FactsOf(index_, local_, pid), worker::CoreLimits(), remembered_, random_);
  Perform(core_->OnZygote(true, "3.11", loop_.Now()));
  Dial();
}

void WorkerHost::Crash() {
  if (!core_) return;
  core_.reset();
  ++life_;
  for (const auto& [id, process] : std::exchange(processes_, {})) {
    checker_.OnActorProcessGone(id);
    if (disturb_all && process.running && !process.ending)
      disturb_all(process.rank.launch, process.rank.epoch);
  }
  arrived_.clear();
  wake_at_.reset();
  if (link_) link_->Reset();
  link_.reset();
}

char WorkerHost::State() const {
  if (!core_.has_value()) return 0;
  return loop_.Now() < stopped_until_ ? 'T' : "RSD"[loop_.random().Below(3)];
}

void WorkerHost::Leave(Duration away) {
  away_ = away;
  if (core_) Perform(core_->Leave("SIGTERM", loop_.Now()));
}

void WorkerHost::Later(Duration delay, std::string_view name, std::function<void()> run) {
  const std::uint64_t life = life_;
  loop_.In(delay, name, [this, life, name, run = std::move(run)] {
    if (life != life_) return;
    if (loop_.Now() < stopped_until_) {
      Later(stopped_until_ - loop_.Now(), name, run);
    } else {
      run();
    }
  });
}

void WorkerHost::Arrive(std::function<void()> run) {
  arrived_.push_back(std::move(run));
  if (loop_.Now() >= stopped_until_) return TakeIn();
  if (arrived_.size() == 1) Later(Duration{}, "worker goes on", [this] { TakeIn(); });
}

void WorkerHost::TakeIn() {
  while (!arrived_.empty()) {
    const std::function<void()> run = std::move(arrived_.front());
    arrived_.pop_front();
    run();
  }
}

void WorkerHost::Dial() {
  Later(loop_.Between(Ms(1), plan_.dial_most), "dial", [this] {
    if (link_ && link_->open()) return;
    auto link = std::make_shared<Link>(loop_, plan_);
    const bool cut = loop_.Now() < cut_until_;
    const SessionId session =
        cut ? SessionId() : head_.Accept(link, wire::Role::kWorker, id_, local_);
    if (session.IsNil()) {
      Dial();
      return;
    }
    link_ = link;
    const std::uint64_t life = life_;
    // Weak: a link that kept itself alive through its own callbacks would outlive the run.
    const auto current = [this, life, weak = std::weak_ptr<Link>(link)] {
      return life == life_ && link_ && weak.lock() == link_;
    };
    EndPoint mine;
    mine.on_message = [this, current](wire::Message message) {
      if (!current()) return;
      Arrive([this, current, m = std::move(message)] {
        if (current()) Perform(core_->OnHeadMessage(m, loop_.Now()));
      });
    };
    mine.on_closed = [this, current] {
      if (!current()) return;
      Arrive([this, current] {
        if (!current()) return;
        link_.reset();
        Perform(core_->OnHeadDown(loop_.Now()));
        Dial();
      });
    };
    link->Open(head_.EndPointOf(session), std::move(mine));
    worker::HeadSession up;
    up.cluster = ClusterId(1, 1);
    up.node = id_;
    up.head_incarnation = head_.core().state().incarnation;
    Perform(core_->OnHeadUp(up, loop_.Now()));
  });
}

// A peer that does not answer is known after 2 s.
void WorkerHost::Probe(const wire::ProbePeer& probe) {
  const auto say = [this, probe](bool reached) {
    Perform(core_->OnPeerProbed(probe.question, probe.node, reached, loop_.Now()));
  };
  Later(loop_.Between(Ms(1), Ms(100)), "probe", [this, probe, say] {
    const WorkerHost* peer = peer_of(probe.node);
    if (Answers() && peer != nullptr && peer->Answers()) return say(true);
    Later(Ms(2000), "no answer", [say] { say(false); });
  });
}

void WorkerHost::Perform(worker::Effects effects) {
  const std::uint64_t life = life_;
  checker_.Expect(core_->leases().Conserves(), "P1: a node holds more than it has");
  for (worker::Effect& effect : effects) {
    if (life != life_) return;
    if (auto* message = std::get_if<worker::ToHead>(&effect)) {
      if (DelayRequest(message->message)) continue;
      if (link_) link_->ToHead(std::move(message->message));
    } else if (auto* to = std::get_if<worker::ToProcess>(&effect)) {
      FromWorker(to->process, to->message);
    } else if (auto* frame = std::get_if<worker::FrameToProcess>(&effect)) {
      StatusOr<wire::Message> message = wire::DecodeFrame(frame->frame);
      if (message.ok()) FromHead(frame->process, *std::move(message));
    } else if (auto* start = std::get_if<worker::StartProcess>(&effect)) {
      StartOne(*start);
    } else if (auto* signal = std::get_if<worker::SignalProcess>(&effect)) {
      const auto process = processes_.find(signal->process);
      if (process == processes_.end()) continue;
      if (signal->signal == SIGKILL || !process->second.stubborn) {
        Exit(signal->process, 0, signal->signal);
      }
    } else if (const auto* sweep = std::get_if<worker::SweepProcesses>(&effect)) {
      std::vector<ProcessId> exiting;
      for (const ProcessId id : sweep->processes) {
        const auto process = processes_.find(id);
        if (process == processes_.end() || process->second.ending) exiting.push_back(id);
      }
      Perform(core_->OnSwept(sweep->ticket, exiting, loop_.Now()));
    } else if (auto* wake = std::get_if<worker::WakeAt>(&effect)) {
      const Instant due = wake->at;
      if (wake_at_ == due) continue;
      wake_at_ = due;
      Later(due - loop_.Now(), "worker timer", [this, due] {
        if (wake_at_ != due) return;
        wake_at_.reset();
        Perform(core_->OnTimer(loop_.Now()));
      });
    } else if (const auto* dial = std::get_if<worker::DialPeer>(&effect)) {
      Probe(dial->probe);
    } else if (auto* save = std::get_if<worker::SaveState>(&effect)) {
      remembered_.incarnation = save->incarnation;
      remembered_.head_incarnation = save->head_incarnation;
    } else if (std::holds_alternative<worker::LeaveNode>(effect)) {
      wire::Message goodbye;
      goodbye.body = wire::Goodbye();
      if (link_) link_->ToHead(std::move(goodbye));
      Crash();
      return loop_.In(away_, "joins again", [this] {
        if (!core_) Start();
      });
    } else if (std::holds_alternative<worker::DropHead>(effect)) {
      if (link_) link_->Reset();
    } else if (auto* keep = std::get_if<worker::KeepValue>(&effect)) {
      worker::KeptValue kept;
      kept.sha256 = "kept";
      kept.size_bytes = keep->bytes.size();
      Later(Ms(1), "kept", [this, id = keep->process, kept] {
        Perform(core_->OnValueKept(id, kept, loop_.Now()));
      });
    }
  }
}

// A request of a process may arrive seconds late, when its epoch is long over, or a second time
// then.
bool WorkerHost::DelayRequest(const wire::Message& message) {
  if (!wire::Holds<wire::Relay>(message.body)) return false;
  if (!Chance(std::min(10 * plan_.duplicate_permille, 500u))) return false;
  Later(loop_.Between(Ms(100), Ms(6000)), "stale request", [this, message] {
    if (link_) link_->ToHead(message);
  });
  return loop_.random().Chance(500);
}

void WorkerHost::StartOne(const worker::StartProcess& start) {
  const ProcessId id = start.request.process;
  if (Chance(plan_.fork_failure_permille)) {
    Later(Ms(1), "fork failed",
          [this, id] { Perform(core_->OnStartFailed(id, "no memory to fork", loop_.Now())); });
    return;
  }
  Process process;
  process.request = start.request;
  process.stubborn = Chance(plan_.stubborn_permille);
  if (const auto* rank = wire::GetIf<wire::RankBegin>(&start.begin.body)) {
    process.rank = *rank;
    process.is_rank = true;
    process.outlives_node = rank->name == kOutlivesNode;
    process.lives_on = rank->name == kLivesOn || process.outlives_node;
    process.group_epoch = rank->life;
  }
  if (const auto* actor = wire::GetIf<wire::ActorBegin>(&start.begin.body)) {
    process.actor = *actor;
    checker_.OnActorProcess(*actor, id);
  }
  processes_.emplace(id, std::move(process));
  Later(loop_.Between(Ms(1), Ms(10)), "forked", [this, id] {
    if (processes_.count(id) == 0) return;
    Perform(core_->OnForked(id, ++pids_, loop_.Now()));
  });
  Later(loop_.Between(Ms(11), Ms(60)), "prepared", [this, id] {
    const auto entry = processes_.find(id);
    if (entry == processes_.end() || entry->second.ending) return;
    if (Chance(plan_.process_crash_permille / 4)) return Exit(id, 0, SIGSEGV);
    switch (entry->second.request.kind) {
      case wire::ProcessKind::kStore: {
        wire::StoreReady ready;
        ready.port = 4242;
        return Say(id, ready);
      }
      case wire::ProcessKind::kRank: {
        wire::RankPrepared prepared;
        prepared.serving = true;
        return Say(id, prepared);
      }
      default:
        return PrepareActor(id);
    }
  });
}

// An actor of a caller takes its time to start, or first waits for its caller's arguments; a
// driver's is there at once.
void WorkerHost::PrepareActor(ProcessId id) {
  Process& process = processes_.at(id);
  if (process.actor.class_name == "Awaits") {
    process.awaits = true;
    wire::ActorReady awaits;
    awaits.awaits = true;
    return Say(id, awaits);
  }
  if (process.actor.class_name != "Slow") return Say(id, wire::ActorReady());
  Later(loop_.Between(Ms(0), plan_.constructor_most), "constructed",
        [this, id] { ActorIsReady(id); });
}

void WorkerHost::Bring(const ProcessId& id) {
  const auto entry = processes_.find(id);
  if (entry == processes_.end() || entry->second.ending ||
      !std::exchange(entry->second.awaits, false))
    return;
  Later(loop_.Between(Ms(0), plan_.constructor_most), "constructed",
        [this, id] { ActorIsReady(id); });
}

void WorkerHost::ActorIsReady(ProcessId id) {
  const auto entry = processes_.find(id);
  if (entry == processes_.end() || entry->second.ending) return;
  Say(id, wire::ActorReady());
  if (!Chance(plan_.actor_crash_permille)) return;
  Later(loop_.Between(Ms(1), Ms(5000)), "actor crashes", [this, id] { Exit(id, 0, SIGKILL); });
}

void WorkerHost::Say(ProcessId id, wire::Body body, std::string attachment, std::uint64_t number) {
  wire::Message message;
  message.id = number;
  message.body = std::move(body);
  message.attachment = std::move(attachment);
  Perform(core_->OnProcessMessage(id, std::move(message), loop_.Now()));
}

void WorkerHost::FromWorker(ProcessId id, const wire::Message& message) {
  if (const auto* end = wire::GetIf<wire::ProcessEnd>(&message.body)) {
    const auto process = processes_.find(id);
    if (process == processes_.end() || process->second.stubborn) return;
    const int code = end->exit_code;
    process->second.returned = true;
    Later(loop_.Between(Ms(1), Ms(20)), "process ends", [this, id, code] { Exit(id, code, 0); });
  } else if (const auto* stop = wire::GetIf<wire::ProcessStop>(&message.body)) {
    if (stop->where && id.hi % 4 != 0) {  // native code of the others holds their interpreter
      Later(loop_.Between(Ms(1), Ms(10)), "says where", [this, id] {
        const auto known = processes_.find(id);
        if (known == processes_.end() || known->second.ending) return;
        wire::ProcessWhere where;
        where.text = "  in train()\n";
        Say(id, where, "", 1);
      });
    }
    if (stop->signal != 0) OnStop(id);
  } else if (wire::Holds<wire::RankRun>(message.body)) {
    Run(id);
    const auto process = processes_.find(id);
    if (process != processes_.end() && process->second.rank.life != 0)
      OnPeersLost(id, process->second.group_epoch);
  } else if (const auto* lost = wire::GetIf<wire::PeersLost>(&message.body)) {
    OnPeersLost(id, lost->group_epoch);
  } else if (const auto* ask = wire::GetIf<wire::ProcessAskBegun>(&message.body)) {
    OnAsked(id, *ask);
  } else if (const auto* formed = wire::GetIf<wire::GroupFormed>(&message.body)) {
    const auto process = processes_.find(id);
    if (process == processes_.end()) return;
    const wire::RankBegin& rank = process->second.rank;
    process->second.group_epoch = formed->group_epoch;
    checker_.OnFormed(rank.launch, rank.epoch, rank.rank, *formed);
  }
}

void WorkerHost::OnPeersLost(ProcessId id, std::uint64_t group_epoch) {
  const auto process = processes_.find(id);
  if (process == processes_.end()) return;
  process->second.group_epoch = std::max(process->second.group_epoch, group_epoch);
  if (!process->second.running || loop_.random().Chance(healed_ ? 0 : 50)) return;
  Later(loop_.Between(Ms(1), Ms(500)), "joins", [this, id] {
    const auto known = processes_.find(id);
    if (known == processes_.end() || known->second.ending || known->second.returned) return;
    wire::GroupJoin join;
    join.group_epoch = known->second.group_epoch;
    const wire::RankBegin& rank = known->second.rank;
    checker_.OnJoining(rank.launch, rank.epoch, rank.rank, join.group_epoch);
    Say(id, join);
  });
}

void WorkerHost::MayHang(ProcessId id) {
  Process& process = processes_.at(id);
  const wire::RankBegin& rank = process.rank;
  if (rank.hang_ms == 0 || healed_) return;
  Prng chance(id.hi ^ id.lo);  // beside the draws of older seeds
  process.stands = chance.Chance(300);
  const auto named = static_cast<std::uint32_t>(chance.Below(rank.world_size));
  Later(Ms(rank.hang_ms + chance.Below(1000)), "says who is late", [this, id, named] {
    const auto known = processes_.find(id);
    if (known == processes_.end() || known->second.ending || known->second.returned) return;
    wire::GroupLate word;
    word.group_epoch = std::max<std::uint64_t>(known->second.group_epoch, 1);
    word.torch_group = "0";
    word.operation = 2;
    word.waited_ms = known->second.rank.hang_ms;
    word.late.emplace_back();
    word.late.back().rank = named;
    Say(id, word);
  });
}

// The answer is drawn: begun, waits itself, or has not begun.
void WorkerHost::OnAsked(ProcessId id, const wire::ProcessAskBegun& ask) {
  const auto entry = processes_.find(id);
  if (entry == processes_.end() || entry->second.ending) return;
  const wire::RankBegin& rank = entry->second.rank;
  Prng chance(id.hi ^ id.lo ^ ask.question);
  wire::ProcessBegun answer;
  answer.question = ask.question;
  answer.begun = chance.Below(4);
  answer.waits = chance.Chance(300);
  const Duration after = Ms(1 + chance.Below(1500));
  const bool late = entry->second.stands || after > Ms(400) || (answer.begun < 2 && !answer.waits);
  checker_.OnAsked(rank.launch, rank.epoch, rank.rank, late);
  if (entry->second.stands) return;
  Later(after, "says how far it is", [this, id, answer] {
    const auto known = processes_.find(id);
    if (known != processes_.end() && !known->second.ending) Say(id, answer);
  });
}

// The process may send its last word, which may be a value, or not; or be stuck.
void WorkerHost::OnStop(ProcessId id) {
  const auto process = processes_.find(id);
  if (process == processes_.end() || process->second.stubborn) return;
  Later(loop_.Between(Ms(1), Ms(1500)), "stops", [this, id] {
    const auto entry = processes_.find(id);
    if (entry == processes_.end() || entry->second.ending) return;
    if (!entry->second.returned && random_.Chance(500)) {
      wire::RankResult result;
      result.outcome = random_.Chance(500) ? wire::Outcome::kSucceeded : wire::Outcome::kCancelled;
      Return(id, result);
    }
    Exit(id, 130, 0);
  });
}

void WorkerHost::Disturb(const LaunchId& launch, std::uint64_t epoch) {
  for (auto& [id, process] : processes_) {
    const bool peer =
        process.is_rank && process.rank.launch == launch && process.rank.epoch == epoch;
    if (!peer || !process.running || process.ending || process.returned || healed_) continue;
    if (process.rank.mode == wire::LaunchMode::kDriver || !loop_.random().Chance(500)) continue;
    if (process.lives_on && !loop_.random().Chance(100)) continue;  // would go on
    Later(loop_.Between(Ms(0), Ms(5)), "collective fails", [this, id = id] {
      const auto entry = processes_.find(id);
      if (entry == processes_.end() || entry->second.ending || entry->second.returned) return;
      wire::RankResult result;
      result.outcome = wire::Outcome::kFailed;
      result.failure.kind = wire::FailureKind::kRaised;
      result.failure.exception_type = "builtins.RuntimeError";
      result.failure.symptom = true;
      Return(id, result);
    });
  }
}

void WorkerHost::Return(ProcessId id, wire::RankResult result) {
  Process& process = processes_.at(id);
  process.returned = true;
  Say(id, std::move(result), "value of " + std::to_string(process.rank.rank));
}

void WorkerHost::Run(ProcessId id) {
  const auto entry = processes_.find(id);
  if (entry == processes_.end() || entry->second.ending) return;
  Process& process = entry->second;
  process.running = true;
  MayHang(id);
  // Launches after the last fault have nothing to outlive, and are waited for.
  const bool long_one = process.outlives_node && !healed_;
  const Duration work = work_of   ? work_of(process.rank)
                        : long_one ? loop_.Between(Ms(100'000), Ms(110'000))
                                   : loop_.Between(Ms(5), Ms(3000));
  if (process.outlives_node) TakeName(id);
  if (Chance(plan_.process_crash_permille)) {
    Later(work, "rank crashes", [this, id] { Exit(id, 0, SIGKILL); });
    return;
  }
  if (process.rank.mode == wire::LaunchMode::kDriver) {
    if (process.rank.rank == 0) {
      Later(work, "driver begins", [this, id] { Drive(id); });
    }
    return;  // the others serve until they are told to end
  }
  const Duration stands = process.stands ? Ms(10000) : Ms(0);
  Later(work + stands, "rank returns", [this, id] {
    const auto rank = processes_.find(id);
    if (rank == processes_.end() || rank->second.ending || rank->second.returned) return;
    wire::RankResult result;
    const bool fails = Chance(50);
    result.outcome = fails ? wire::Outcome::kFailed : wire::Outcome::kSucceeded;
    if (fails) result.failure.kind = wire::FailureKind::kRaised;
    if (fails) result.failure.exception_type = "builtins.KeyError";
    Return(id, result);
  });
}

void WorkerHost::TakeName(ProcessId id) {
  const auto entry = processes_.find(id);
  if (entry == processes_.end() || entry->second.ending || entry->second.returned) return;
  Process& process = entry->second;
  if (!process.child.IsNil()) {
    wire::KillActor kill;
    kill.actor = process.child;
    kill.no_restart = true;
    Say(id, kill, {}, 8);
  }
  const wire::RankBegin& rank = process.rank;
  wire::CreateActor create;
  create.spec.actor = ActorId::Random(random_);
  create.spec.class_name = "Worker";
  create.spec.name = rank.launch.Short() + " " + std::to_string(rank.epoch) + " " +
                     std::to_string(rank.rank);
  create.spec.get_if_exists = true;
  create.spec.max_restarts = random_.Chance(300) ? -1 : 0;
  Say(id, create, "class", 7);
  Later(loop_.Between(Ms(500), Ms(15'000)), "next of its name", [this, id] { TakeName(id); });
}

void WorkerHost::Drive(ProcessId id) {
  const auto entry = processes_.find(id);
  if (entry == processes_.end() || entry->second.ending) return;
  wire::AcquireDriver acquire;
  acquire.launch = entry->second.rank.launch;
  acquire.epoch = entry->second.rank.epoch;
  acquire.nonce = RequestId(id.hi, id.lo);
  Say(id, acquire, {}, 1);
}

// current().run: the ranks' shares (one rank's, sometimes), given back after a while, or never.
void WorkerHost::LeaseShares(ProcessId id) {
  Process& process = processes_.at(id);
  process.leased = true;
  process.share = GroupId::Random(random_);
  wire::CreateGroup create;
  create.group = process.share;
  create.shares = true;
  create.share_rank = random_.Chance(300) ? 0 : -1;
  Say(id, create, {}, 5);
}

void WorkerHost::OnShare(ProcessId id, const wire::GroupInfo& info) {
  Process& process = processes_.at(id);
  if (info.group != process.share || info.state != wire::GroupState::kCreated) return;
  // A run that never ended would keep the driver's actor waiting, and the driver with it.
  if (!process.child.IsNil() || random_.Chance(800)) {
    Later(loop_.Between(Ms(1), Ms(500)), "run ends", [this, id, share = process.share] {
      const auto entry = processes_.find(id);
      if (entry == processes_.end() || entry->second.ending) return;
      wire::RemoveGroup remove;
      remove.group = share;
      Say(id, remove, {}, 6);
    });
  }
  process.share = GroupId();
  if (process.child.IsNil() && !process.completing) SendComplete(id);
}

// Answers to the driver's requests: 1 acquire, 2 an actor, 3 complete, 4 renew, 5 shares, 6 given
// back; to another rank's: 7 an actor of its name, 8 its end.
void WorkerHost::FromHead(ProcessId id, wire::Message message) {
  const auto entry = processes_.find(id);
  if (entry == processes_.end() || entry->second.ending) return;
  Process& process = entry->second;
  if (const auto* marker = wire::GetIf<wire::MarkerReply>(&message.body)) {
    checker_.OnObserved(marker->marker);
    if (process.completing && marker->marker.request == process.complete) {
      checker_.OnAcknowledged(marker->marker.launch, process.complete);
    }
    return;
  }
  if (wire::Holds<wire::ErrorReply>(message.body)) {
    const auto& error = wire::Get<wire::ErrorReply>(message.body);
    const bool fenced = error.code == static_cast<std::uint16_t>(ErrorCode::kFenced);
    if (fenced) return Exit(id, 76, 0);
    const bool alone = process.child.IsNil() && !process.completing;
    if (message.reply_to == 2 || (message.reply_to == 5 && alone)) SendComplete(id);
    return;
  }
  if (wire::Holds<wire::DriverGranted>(message.body)) {
    if (random_.Chance(300)) Renew(id);
    // Granted again after a repeat: the lease it has is enough.
    if (!process.leased && random_.Chance(400)) LeaseShares(id);
    if (random_.Chance(500)) {
      wire::CreateActor create;
      create.spec.actor = ActorId(id.lo, id.hi);
      create.spec.class_name = "Worker";
      create.spec.shown = id.hi % 2 == 0;
      if (random_.Chance(500)) {
        wire::Resource cpu;
        cpu.name = "CPU";
        cpu.ten_thousandths = 5000;
        create.spec.run_resources = {cpu};
      }
      process.child = create.spec.actor;
      Say(id, create, "class", 2);
    } else if (process.share.IsNil()) {
      SendComplete(id);
    }
  } else if (const auto* group = wire::GetIf<wire::GroupUpdate>(&message.body)) {
    OnShare(id, group->info);
  } else if (wire::Holds<wire::ActorUpdate>(message.body)) {
    const auto& info = wire::Get<wire::ActorUpdate>(message.body).info;
    if (process.outlives_node) {
      if (message.reply_to == 7) process.child = info.actor;
      return;
    }
    const bool settled =
        info.state == wire::ActorState::kAlive || info.state == wire::ActorState::kDead;
    if (settled && !process.completing) SendComplete(id);
  }
}

void WorkerHost::Renew(ProcessId id) {
  Later(Ms(1000), "renew", [this, id] {
    const auto entry = processes_.find(id);
    if (entry == processes_.end() || entry->second.ending) return;
    wire::RenewDriver renew;
    renew.launch = entry->second.rank.launch;
    renew.epoch = entry->second.rank.epoch;
    Say(id, renew, {}, 4);
    Renew(id);
  });
}

void WorkerHost::SendComplete(ProcessId id) {
  Process& process = processes_.at(id);
  process.completing = true;
  process.complete = RequestId::Random(random_);
  checker_.OnCompleting(process.complete, process.rank.epoch);
  const Duration work = loop_.Between(Ms(1), Ms(2000));
  Later(work, "driver returns", [this, id] {
    const auto entry = processes_.find(id);
    if (entry == processes_.end() || entry->second.ending) return;
    wire::Complete complete;
    complete.launch = entry->second.rank.launch;
    complete.epoch = entry->second.rank.epoch;
    complete.request = entry->second.complete;
    complete.outcome = Chance(200) ? wire::Outcome::kFailed : wire::Outcome::kSucceeded;
    Say(id, complete, "the driver's value", 3);
    if (Chance(plan_.process_crash_permille)) Exit(id, 0, SIGKILL);
  });
}

void WorkerHost::Exit(ProcessId id, int code, int signal) {
  const auto entry = processes_.find(id);
  if (entry == processes_.end() || entry->second.ending) return;
  entry->second.ending = true;
  checker_.OnActorProcessGone(id);
  const wire::RankBegin& rank = entry->second.rank;
  // The process's sockets close before its exit can be seen. One that failed or succeeded by its
  // own word closes them late enough.
  if (entry->second.running && disturb_all) disturb_all(rank.launch, rank.epoch);
  worker::ExitInfo exit;
  exit.exit_code = code;
  exit.signal = signal;
  const auto first = loop_.Between(Ms(0), Ms(3));
  const auto second = loop_.Between(Ms(0), Ms(3));
  Later(first, "exited", [this, id, exit] { Perform(core_->OnExited(id, exit, loop_.Now())); });
  Later(second, "drained", [this, id] { Perform(core_->OnDrained(id, loop_.Now())); });
  Later(std::max(first, second) + Ms(1), "gone", [this, id] {
    processes_.erase(id);
    Perform(core_->OnGone(id, loop_.Now()));
  });
}

}  // namespace troupe::sim
