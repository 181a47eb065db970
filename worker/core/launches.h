// The epochs of launches that have ranks on this node.
//
// Pure; view: one node. Per (launch, epoch, generation):
//
//   StartRanks -> [payload fetched] -> store and ranks forked -> all prepared -> RanksReady
//     -> PublishRoster -> RankRun to each -> RankResult whole -> RankDone
//   a rank that is done keeps its sockets: until EndEpoch if it succeeded, until RankDoneAck if it
//     failed; then it leaves
//   StopRanks -> code that still runs is told to stop -> exit seen and channel drained -> RankDone
//   AskRanks -> all that sockets and exits have to tell now is told -> RanksSeen
//   PeersLost -> told to ranks whose code runs -> GroupJoin of each -> GroupJoined -> FormGroup
//     -> GroupFormed to each (head/core/launched/gang/regroup.h)
//   ReplaceRanks -> forked in a dead one's place
//   EndEpoch at any time -> every process of it and of older ones ends -> EpochEnded
//
// Invariants (tests carry the numbers):
// W1 RankDone is sent when the rank's result is whole; where there is none, or it was told to stop,
//    when its exit was seen and its channel drained, whichever is first.
// W2 RankDone is repeated, also to a later head, until it is acknowledged.
// W3 A rank that ends without a value is FAILED; a value that arrived counts, however it exits.
// W4 A higher epoch or generation ends the lower one; a lower or ended one starts nothing, but
//    ranks in the places of others that died, once all that it had here is gone.
// W5 EpochEnded is sent only when nothing of the epoch and of what its driver created is left.
// W6 The store is forked before the ranks; RanksReady waits for all of them.
// W7 Losing the head ends nothing; ranks that are done leave when it has been away for 60 s.
// W8 A rank that is done ends no connection before it may: see above.
// W9 RanksSeen follows the RankDone of every rank whose exit had begun, or whose result had been
//    sent, at the question.
// W11 GroupJoined names the ranks here that have come to that epoch of the group, with each that
//    comes, once the store is there where this node hosts it; again when the head asks again.
// W12 RankBegun answers AskBegun with what the rank says of itself; where it says nothing for
//    limit_ms, that it is silent. What a rank says of others goes to the head as that rank's word.
//    A question with a key is for a rank that has returned, and whose process is still there.
// W13 PeersReturned is passed on to the ranks here whose code runs.
// W14 Where the head keeps the end of the ranks' logs, it is sent before each RankDone.
// W10 A rank that runs a program, itself or by exec, has succeeded if that ended with 0, with no
//     other word and not told to stop.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/base/status.h"
#include "worker/core/core_context.h"

namespace troupe::worker {

/// A value the worker keeps on disk.
struct KeptValue {
  std::string sha256;
  std::uint64_t size_bytes = 0;
};

class Launches {
 public:
  explicit Launches(CoreContext& context) : context_(context) {}

  void Start(const wire::StartRanks& start, const std::string& payload, Instant now, Effects* out);
  void Publish(const wire::PublishRoster& roster, Instant now, Effects* out);
  void End(const wire::EndEpoch& end, Instant now, Effects* out);
  void Stop(const wire::StopRanks& stop, Instant now, Effects* out);
  void Ask(const wire::AskRanks& ask, Effects* out);
  void LosePeers(const wire::PeersLost& word, Instant now, Effects* out);
  void FormGroup(const wire::FormGroup& group, Effects* out);
  void AskHowFar(const wire::AskBegun& ask, Instant now, Effects* out);
  void TellReturned(const wire::PeersReturned& word, Effects* out) const;
  void Replace(const wire::ReplaceRanks& order, const std::string& payload, Instant now,
               Effects* out);
  /// The node leaves: code of a rank that still runs is told to stop, and has drain_grace. False:
  /// there is none to tell.
  bool Drain(Process& process, const std::string& reason, Instant now, Effects* out);
  void OnSwept(std::uint64_t ticket, const std::vector<ProcessId>& exiting, Effects* out);
  void Acknowledge(const wire::RankDoneAck& ack, Instant now, Effects* out);
  /// The head has been away for so long that ranks which are done need not wait for it.
  void LeaveWithoutHead(Instant now, Effects* out);
  bool AnyWaits() const;

  /// False when the ticket is not of a launch.
  bool OnBlob(std::uint64_t ticket, const StatusOr<std::string>& path, Instant now, Effects* out);
  /// False when `message` is not of a rank's or store's vocabulary.
  bool OnMessage(Process& process, wire::Message message, Instant now, Effects* out);
  void OnValueKept(Process& process, const StatusOr<KeptValue>& kept, Instant now, Effects* out);
  void OnStartFailed(Process& process, const std::string& error, Instant now, Effects* out);
  /// An exit was seen or a channel drained.
  void OnEnding(Process& process, Instant now, Effects* out);
  /// After the process has been removed from the table: an epoch may be over.
  void OnGone(Instant now, Effects* out);
  /// The value of this rank is still being written: its process stays in the table.
  bool Keeping(const Process& process) const;

  void OnRegistered(Instant now, Effects* out);
  void OnTimer(Instant now, Effects* out);
  std::optional<Instant> NextDue() const;
  std::vector<wire::HeldRank> Held() const;
  /// Runs, and what is under way about them.
  std::size_t held() const {
    return runs_.size() + unacknowledged_.size() + questions_.size() + how_far_.size() +
           ending_.size();
  }
  /// Returns true if this epoch of the launch was ended here: nothing of it may start.
  bool Ended(const LaunchId& launch, std::uint64_t epoch) const;

 private:
  struct Result {
    wire::Outcome outcome = wire::Outcome::kNone;
    wire::Failure failure;
    std::string attachment;
    bool keeping = false;  // the shell writes it to disk
    bool kept = false;
    std::string sha256;
    std::uint64_t size_bytes = 0;
  };
  struct Rank {
    wire::RankPlace place;
    ProcessId process;
    ActorId actor;
    bool prepared = false;
    bool done = false;
    bool succeeded = false;  // and done
    int exit_code = 0;       // with which it leaves
    std::optional<Result> result;
    // Value of a rank that runs a program, should it end with 0
    std::optional<std::string> program_value;
    std::string program;     // the command that it became by exec, where it did
    std::uint64_t life = 0;  // as in NewRank
    ReservationKey lease;  // reservation that its process lives in
    std::vector<std::uint32_t> gpu_ids;
    std::uint64_t group_epoch = 0;  // to which it has come
  };
  struct Run {
    wire::StartRanks start;
    std::vector<Rank> ranks;
    Interface interface;
    ProcessId store;
    std::optional<std::uint16_t> store_port;  // 0: no torch, no store
    std::string group_secret;  // secret that the store's process made
    bool ready = false;                       // RanksReady was sent
    bool roster = false;                      // PublishRoster came
    std::uint64_t ticket = 0;
    bool fetching = false;
    std::string payload_path;       // the payload is this file
    wire::RankRun go;  // how ranks run
    std::uint64_t group_epoch = 0;  // epoch reported to its ranks; 0: none
    bool hosts_group_store = false;
  };
  struct Question {
    wire::RanksSeen answer;
    std::set<ProcessId> awaited;
  };
  struct HowFar {
    wire::RankBegun answer;
    Duration limit{};
    Instant due{};
  };
  struct Unacknowledged {
    wire::Message done;
    std::optional<SendLogEnd> log;
  };
  using RunKey = std::tuple<LaunchId, std::uint64_t, std::uint64_t>;
  using DoneKey = std::tuple<LaunchId, std::uint64_t, std::uint32_t>;

  static RunKey KeyOf(const Process& process) {
    return {process.launch, process.epoch, process.generation};
  }
  std::string Problem(const wire::StartRanks& start) const;
  bool ComesAnew(const wire::StartRanks& start) const;
  void Fork(Run& run, const std::string& payload, const std::string& payload_path, Instant now,
            Effects* out);
  std::vector<wire::EnvVar> EnvironmentOf(const Run& run, const Rank& rank,
                                          ProcessId process) const;
  bool ForkOne(Run& run, Rank& rank, const wire::Message& begin, Effects* out);
  /// Handles a rank's message about its group, or about where it is. False: it is none of these.
  bool OnWordOfGroup(Run* run, Process& process, wire::Body* body, Effects* out);
  void RepeatDone(Instant now, Effects* out);
  void SayDone(const Unacknowledged& done, Effects* out) const;
  static LogPlace PlaceOf(const wire::StartRanks& start, std::uint32_t rank);
  static Rank NextOf(const Run& run, const wire::NewRank& order);
  void ForkStore(Run& run, Effects* out);
  wire::Message BeginOf(const Run& run, const std::string& payload,
                        const std::string& payload_path) const;
  void FailAll(Run& run, const std::string& cause, Instant now, Effects* out);
  void CheckReady(Run& run, Effects* out);
  /// W11
  void CheckJoined(const Run& run, Effects* out);
  void SayLate(const Run& run, const Rank& rank, wire::GroupLate word, Effects* out) const;
  void SayAwaits(const Run& run, const Rank& rank, wire::GroupAwaits word, Effects* out) const;
  void SayHowFar(const Rank& rank, wire::ProcessBegun word, Effects* out);
  void SaySilent(Instant now, Effects* out);
  void LetRun(const Run& run, const Rank& rank, Effects* out) const;
  /// For people; "": all from the node's own zygote.
  std::string StartedFrom(const Run& run) const;
  void PostReady(const Run& run, Effects* out);
  void TakeResult(Run& run, Rank& rank, Process& process, wire::RankResult result,
                  std::string attachment, Instant now, Effects* out);
  void TakePrepared(Run& run, Rank& rank, Process& process, const wire::RankPrepared& prepared,
                    std::string attachment, Instant now, Effects* out);
  void ReportResult(Run& run, Rank& rank, const Process& process, Instant now, Effects* out);
  static bool RunsCode(const Run& run, const Rank& rank, const Process& process);
  void LetLeave(const Run& run, Process& process, wire::ProcessEnd end, Instant now, Effects* out);
  void SayWhere(const Run& run, const Rank& rank, std::string text, Effects* out);
  void NoteHowItLeft(const Run& run, const Rank& rank, const Process& process, Effects* out);
  void Finish(Run& run, Rank& rank, const Process& process, Instant now, Effects* out);
  void Report(const Run& run, Rank& rank, wire::RankDone done, std::string attachment, Instant now,
              Effects* out);
  void EndUpTo(const LaunchId& launch, std::uint64_t epoch, const wire::ProcessEnd& end,
               Instant now, Effects* out);
  void EndOne(const wire::EndEpoch& end, Process& process, Instant now, Effects* out);
  struct Left {
    bool others = false;
    std::vector<ProcessId> stores;
  };
  void CheckEnded(Instant now, Effects* out);
  Left LeftOf(const LaunchId& launch, std::uint64_t epoch) const;
  void DropRun(std::map<RunKey, Run>::iterator run, Effects* out);
  void RememberEnded(const LaunchId& launch, std::uint64_t epoch);
  Run* FindRun(const Process& process);
  static Rank* FindRank(Run& run, ProcessId process);
  /// This process's end, or result, was waited for by an answer.
  void AnswerWithout(ProcessId process, Effects* out);

  CoreContext& context_;
  std::map<RunKey, Run> runs_;
  std::map<DoneKey, Unacknowledged> unacknowledged_;
  std::optional<Instant> repeat_due_;
  std::map<std::uint64_t, Question> questions_;  // by ticket
  std::map<ProcessId, HowFar> how_far_;          // W12, what is asked of each now
  std::map<LaunchId, std::uint64_t> ending_;     // EndEpoch came, EpochEnded not sent yet
  std::map<LaunchId, std::uint64_t> ended_;      // highest epoch that was ended here
  std::deque<LaunchId> ended_order_;
};

}  // namespace troupe::worker
