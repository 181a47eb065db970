// The part of Node that performs what the core decides and tells it what happened.
#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <fstream>
#include <type_traits>
#include <utility>
#include <variant>

#include "runtime/base/log.h"
#include "runtime/base/unique_fd.h"
#include "worker/hasher.h"
#include "worker/node.h"
#include "worker/peer_probe.h"

namespace troupe::worker {

Supervisor::Events Node::SupervisorEvents() {
  // Before the core exists (the first join is under way) only the zygote can have anything to say.
  Supervisor::Events events;
  events.zygote = [this](bool ready, const std::string& version) {
    python_version_ = version;
    if (core_) Perform(core_->OnZygote(ready, version, clock_.Now()));
  };
  events.ahead = [this](const std::vector<std::string>& each) {
    preimports_ = each;
    if (core_) Perform(core_->OnPreimports(each, clock_.Now()));
  };
  events.forked = [this](ProcessId id, int pid, const std::string& from) {
    log_watch_->WakeAbsent();
    Perform(core_->OnForked(id, pid, clock_.Now(), from));
  };
  events.failed = [this](ProcessId id, const std::string& error) {
    log_keeper_->Ended(id);
    Perform(core_->OnStartFailed(id, error, clock_.Now()));
  };
  events.message = [this](ProcessId id, wire::Message message) {
    OnProcessMessage(id, std::move(message));
  };
  events.exited = [this](ProcessId id, ExitInfo exit) {
    log_watch_->WakeAll();
    Perform(core_->OnExited(id, std::move(exit), clock_.Now()));
  };
  events.drained = [this](ProcessId id) { Perform(core_->OnDrained(id, clock_.Now())); };
  events.gone = [this](ProcessId id) {
    const auto asker = askers_.find(id);
    if (asker != askers_.end()) {
      blobs_->AbandonUploads(asker->second);
      service_->Forget(asker->second);
      askers_.erase(asker);
    }
    log_keeper_->Ended(id);
    files_.rings().Ended(id, clock_.Now());
    Perform(core_->OnGone(id, clock_.Now()));
  };
  return events;
}

HeadLink::Events Node::LinkEvents() {
  HeadLink::Events events;
  events.up = [this](const wire::Welcome& welcome) {
    HeadSession session;
    session.cluster = welcome.cluster_id;
    session.node = welcome.subject;
    session.head_incarnation = welcome.head_incarnation;
    Perform(core_->OnHeadUp(session, clock_.Now()));
  };
  events.message = [this](wire::Message message) {
    Perform(core_->OnHeadMessage(std::move(message), clock_.Now()));
  };
  events.down = [this](const Status& reason) {
    Log(LogLevel::kWarning, "the session with the head ended", {{"reason", MessageOf(reason)}});
    Perform(core_->OnHeadDown(clock_.Now()));
  };
  events.renewed = [this](const net::Credentials& credentials) {
    // a node that comes back after days renews before they are open: they open with what it has
    // then
    if (!doors_) return;
    const Status status = doors_->Renew(credentials);
    if (!status.ok()) {
      Log(LogLevel::kError, "the renewed certificate", {{"reason", MessageOf(status)}});
    }
  };
  return events;
}

void Node::OnProcessMessage(ProcessId id, wire::Message message) {
  if (Service::Handles(message.body)) {
    scope_.Spawn("answer a process", AnswerProcess(id, std::move(message)));
    return;
  }
  if (auto* result = wire::GetIf<wire::RankResult>(&message.body)) {
    const bool failed = result->outcome != wire::Outcome::kSucceeded;
    const std::string killed = failed ? supervisor_->KilledForMemory() : "";
    if (!killed.empty()) NoteChildOutOfMemory(killed, &result->failure);
    if (failed) result->failure.log_tail = supervisor_->LogTail(id);
  }
  Perform(core_->OnProcessMessage(id, std::move(message), clock_.Now()));
}

async::Task<void> Node::AnswerProcess(ProcessId id, wire::Message request) {
  const auto [asker, fresh] = askers_.emplace(id, next_asker_);
  if (fresh) ++next_asker_;
  const wire::Message answer = co_await service_->Answer(asker->second, std::move(request));
  supervisor_->Send(id, answer);
}

void Node::Perform(Effects effects) {
  for (Effect& each : effects) effects_.push_back(std::move(each));
  if (std::exchange(performing_, true)) return;
  while (!effects_.empty()) {
    Effect effect = std::move(effects_.front());
    effects_.pop_front();
    PerformOne(effect);
  }
  performing_ = false;
}

void Node::PerformOne(Effect& effect) {
  const auto perform = [this](auto& what) {
    using Kind = std::decay_t<decltype(what)>;
    if constexpr (std::is_same_v<Kind, ToHead>) {
      link_->Send(what.message);
    } else if constexpr (std::is_same_v<Kind, ToProcess>) {
      supervisor_->Send(what.process, what.message);
    } else if constexpr (std::is_same_v<Kind, FrameToProcess>) {
      supervisor_->SendFrame(what.process, std::move(what.frame));
    } else if constexpr (std::is_same_v<Kind, StartProcess>) {
      log_keeper_->Began(what.request.process, what.log);
      supervisor_->Start(std::move(what));
    } else if constexpr (std::is_same_v<Kind, SignalProcess>) {
      supervisor_->Signal(what.process, what.signal, what.to_group);
    } else if constexpr (std::is_same_v<Kind, SweepProcesses>) {
      const std::vector<ProcessId> exiting = supervisor_->Sweep(what.processes);
      Perform(core_->OnSwept(what.ticket, exiting, clock_.Now()));
    } else if constexpr (std::is_same_v<Kind, FetchBlob>) {
      Fetch(what);
    } else if constexpr (std::is_same_v<Kind, ForgetBlob>) {
      const auto pinned = pinned_.find(what.ticket);
      if (pinned == pinned_.end()) return;
      blobs_->Unpin(pinned->second);
      pinned_.erase(pinned);
    } else if constexpr (std::is_same_v<Kind, SendLogEnd>) {
      SendEnd(std::move(what));
    } else if constexpr (std::is_same_v<Kind, KeepValue>) {
      Keep(std::move(what));
    } else if constexpr (std::is_same_v<Kind, WakeAt>) {
      wake_.ArmAt(what.at);
    } else if constexpr (std::is_same_v<Kind, SaveState>) {
      const Status saved = files_.Save(what);
      if (!saved.ok()) Log(LogLevel::kError, "node.json", {{"reason", MessageOf(saved)}});
    } else if constexpr (std::is_same_v<Kind, DropHead>) {
      link_->Drop(MakeError(ErrorCode::kConnection, what.reason));
    } else if constexpr (std::is_same_v<Kind, worker::Joined>) {
      Joined(what);
    } else if constexpr (std::is_same_v<Kind, NotTaken>) {
      Log(LogLevel::kWarning, "a process sent a message that nobody takes; it is dropped",
          {{"process", what.process.Hex()}, {"kind", std::string(what.kind)}});
    } else if constexpr (std::is_same_v<Kind, RevokeTokens>) {
      doors_->Revoke(what.tokens);
    } else if constexpr (std::is_same_v<Kind, DialPeer>) {
      scope_.Spawn("probe", Dial(what.probe));
    } else if constexpr (std::is_same_v<Kind, LeaveNode>) {
      scope_.Spawn("leave", link_->Leave());
    }
  };
  std::visit(perform, effect);
}

void Node::Joined(const worker::Joined& joined) {
  SetLogSource("worker " + joined.name);
  Log(LogLevel::kInfo, "joined", {{"node", joined.node.Short()}, {"head", options_.head_text}});
  if (!on_joined_) return;  // again, after a lost session
  std::exchange(on_joined_, nullptr)(joined.node, joined.name);
  // now that whoever waits has been told: its imports take a core for a second
  supervisor_->StartZygote();
}

async::Task<void> Node::Dial(wire::ProbePeer probe) {
  const std::uint64_t question = probe.question;
  const NodeId node = probe.node;
  const PeerPlace place{probe.unix_path, probe.boot_id, probe.listen_host, probe.listen_port};
  auto answering = PeerAnswers(node, DialOptions(Self(), place, link_->credentials()), clock_);
  const bool reached = co_await std::move(answering);
  Perform(core_->OnPeerProbed(question, node, reached, clock_.Now()));
}

void Node::Fetch(const FetchBlob& effect) {
  const std::uint64_t ticket = effect.ticket;
  const std::string digest = effect.blob.sha256;
  fetcher_->Fetch(effect.blob, [this, ticket, digest](const StatusOr<std::string>& path) {
    if (path.ok()) pinned_[ticket] = digest;
    Perform(core_->OnBlob(ticket, path, clock_.Now()));
  });
}

void Node::SendEnd(SendLogEnd effect) {
  StatusOr<LogPiece> end = logs_->End(LogFile(effect.place, true), effect.bytes_max);
  if (!end.ok() || end->text.empty()) return;
  wire::Message message;
  effect.message.offset = end->offset;
  message.body = effect.message;
  message.attachment = std::move(end->text);
  link_->Send(message);
}

void Node::Keep(KeepValue effect) {
  const std::string path = files_.ResultDir() + "/" + effect.process.Hex();
  const ProcessId id = effect.process;
  auto work = [this, path, id, effect = std::move(effect)]() mutable {
    Status written;
    if (!effect.from_file) {
      // Creates the file with its mode first, which a stream would take from the umask.
      const UniqueFd made(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
      std::ofstream file(path, std::ios::binary | std::ios::trunc);
      file.write(effect.bytes.data(), static_cast<std::streamsize>(effect.bytes.size()));
      file.close();
      if (!made.valid() || !file) written = MakeError(ErrorCode::kInternal, "write " + path);
    }
    StatusOr<FileDigest> digest = written.ok() ? HashFile(path) : StatusOr<FileDigest>(written);
    async::asio::post(executor_, [this, path, id, digest = std::move(digest)] {
      const Status adopted = digest.ok() ? blobs_->Adopt(path, digest->sha256) : digest.status();
      const StatusOr<KeptValue> kept =
          adopted.ok() ? StatusOr<KeptValue>(KeptValue{digest->sha256, digest->size})
                       : StatusOr<KeptValue>(adopted);
      Perform(core_->OnValueKept(id, kept, clock_.Now()));
    });
  };
  async::asio::post(helper_.context(), std::move(work));
}

}  // namespace troupe::worker
