// Fuzzes the head's reducer with what authenticated peers may say: any message, in any order, from
// a node, a client, an observer, an actor and a rank behind the node. Nothing a peer says may end
// the head, and a head that replays the journal of what happened starts again.
//
// The input is control frames in a row; a message's id picks who says it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "head/core/head_core.h"
#include "runtime/wire/frame.h"
#include "tests/head/counting_mint.h"

namespace troupe::head {
namespace {

constexpr int kMessagesMax = 64;

// A head, one node with an actor and a launch of one rank, one client, one observer; every append
// is durable at once.
class Stage {
 public:
  Stage() : core_(CoreOptions(), Seams{random_, mint_}) {
    Take(core_.Start(now_, 1));
    const wire::Role roles[] = {wire::Role::kWorker, wire::Role::kClient, wire::Role::kObserver};
    for (std::uint64_t i = 0; i < 3; ++i) {
      SessionOpened opened;
      opened.session = SessionId(1, i);
      opened.role = roles[i];
      opened.subject = NodeId(7, i);
      Feed(opened);
    }
    wire::RegisterNode node;
    node.node = NodeId(7, 0);
    node.name = "a";
    node.resources.resize(1);
    node.resources[0].name = "CPU";
    node.resources[0].ten_thousandths = 80000;
    wire::Message message;
    message.id = 1;
    message.body = node;
    Say(0, std::move(message), false);
    wire::CreateActor create;
    create.spec.actor = ActorId(9, 1);
    create.spec.class_name = "A";
    Say(1, Of(create), false);
    wire::ActorStarted started;
    started.actor = create.spec.actor;
    started.incarnation = 1;
    Say(0, Of(started), false);
    wire::SubmitLaunch submit;
    submit.spec.ranks = 1;
    submit.spec.attempts_max = 2;
    submit.spec.mode = wire::LaunchMode::kDriver;
    submit.request = RequestId(3, 1);
    Say(1, Of(submit), false);
    Serve();
    if (core_.state().launches.empty() || core_.state().launches.begin()->second.ranks.empty() ||
        core_.state().actors.empty()) {
      std::abort();  // there would be nobody behind the node
    }
  }

  void Say(std::uint64_t who, wire::Message message, bool relayed) {
    MessageFrom input;
    input.session = SessionId(1, who);
    if (relayed) {
      wire::Relay relay;
      if (message.id / 4 % 2 == 0) {
        relay.process = ProcessId(8, 1);
        relay.actor = ActorId(9, 1);
      } else {
        relay.process = ProcessId(8, 2);
        relay.launch =
            core_.state().launches.empty() ? LaunchId() : core_.state().launches.begin()->first;
        relay.epoch = 1;
        relay.rank = 0;
      }
      input.relay = relay;
    }
    input.message = std::move(message);
    Feed(input);
    now_ += std::chrono::milliseconds(300);
    Feed(Tick());
  }

  void Restart() {
    HeadCore again(CoreOptions(), Seams{random_, mint_});
    std::uint64_t sequence = 0;
    for (const wire::Event& event : journal_) again.Replay({++sequence, event});
    again.Start(now_, 2);
  }

 private:
  template <class Body>
  static wire::Message Of(Body body) {
    wire::Message message;
    message.id = 1;
    message.body = std::move(body);
    return message;
  }
  // The node does what it is told.
  void Serve() {
    for (bool more = true; more;) {
      more = false;
      for (const wire::Message& told : std::exchange(told_, {})) {
        more = true;
        if (const auto* reserve = wire::GetIf<wire::Reserve>(&told.body)) {
          wire::ReserveReply reply;
          reply.group = reserve->group;
          reply.attempt = reserve->attempt;
          reply.granted = true;
          Say(0, Of(reply), false);
        } else if (const auto* start = wire::GetIf<wire::StartRanks>(&told.body)) {
          wire::RanksReady ready;
          ready.launch = start->launch;
          ready.epoch = start->epoch;
          ready.generation = start->generation;
          ready.store_host = "10.0.0.1";
          ready.store_port = 4242;
          Say(0, Of(ready), false);
        }
      }
    }
  }
  void Feed(const Input& input) { Take(core_.Handle(input, now_, 1)); }
  void Take(Effects effects) {
    std::uint64_t last = 0;
    for (Row& row : effects.append) {
      last = row.sequence;
      journal_.push_back(std::move(row.event));
    }
    for (Send& send : effects.sends) {
      const bool order = wire::Holds<wire::Reserve>(send.message.body) ||
                         wire::Holds<wire::StartRanks>(send.message.body);
      if (order && told_.size() < kMessagesMax) told_.push_back(std::move(send.message));
    }
    if (effects.plan_soon) Feed(PlanNow());
    if (last != 0) Feed(Appended{last});
  }

  Instant now_{std::chrono::seconds(1000)};
  Prng random_{42};
  CountingMint mint_;
  std::deque<wire::Event> journal_;
  std::vector<wire::Message> told_;
  HeadCore core_;
};

}  // namespace
}  // namespace troupe::head

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace wire = troupe::wire;
  troupe::head::Stage stage;
  wire::FrameReader reader;
  reader.Feed(std::string_view(reinterpret_cast<const char*>(data), size));
  for (int count = 0; count < troupe::head::kMessagesMax; ++count) {
    auto next = reader.Next();
    if (!next || !next->ok()) break;
    wire::Message message = std::move(**next);
    const std::uint64_t who = message.id % 4;
    stage.Say(who % 3, std::move(message), who == 3);
  }
  stage.Restart();
  return 0;
}
