// A process of the objects' simulation: the real reference table and slots, and a user that puts,
// calls, gets, keeps, drops and forks at random.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/store/core/references.h"
#include "runtime/store/core/slots.h"

namespace troupe::sim {

class ObjectsWorld;

struct CallFrame {
  std::uint64_t number = 0;
  store::ObjectId result;
  std::vector<store::Lent> args;
};
struct ReplyFrame {
  std::uint64_t number = 0;
  store::ObjectId result;
  store::Answer answer;
};

class ObjectsProcess {
 public:
  ObjectsProcess(ObjectsWorld& world, ProcessId id, NodeId node);

  /// Does one random act of the user.
  void Act();
  /// Lets go of everything; calls that run end first.
  void LetGo();
  void DoEffects();

  void OnCall(const ProcessId& caller, const CallFrame& call);
  void OnReply(const ProcessId& callee, const ReplyFrame& reply);
  /// A connection to `peer` is there again: calls it has not received end, replies go again.
  /// `session`: false when the peer remembers nothing of the calls.
  void OnResumed(const ProcessId& peer, std::uint64_t calls_received, bool session);
  void OnDead(const ProcessId& peer);
  void CloseTo(const ProcessId& peer);
  std::uint64_t CallsReceivedFrom(const ProcessId& caller);

  /// Returns the fault at the end, or empty.
  std::string Unended() const;
  std::string Leaks() const;

  const ProcessId id;
  const NodeId node;
  bool alive = true;
  store::References table;
  store::Slots slots;
  struct View {
    store::ObjectId object;
    store::SlotId slot;
    std::uint64_t generation = 0;
  };
  std::vector<View> views;
  std::set<ProcessId> watched;
  std::set<ProcessId> closed;  // connections read to their end and closed for good
  bool letting_go = false;

 private:
  struct OutCall {
    store::ObjectId result;
    std::vector<std::uint64_t> loans;
  };
  struct Session {
    std::uint64_t sent = 0;  // as caller
    std::map<std::uint64_t, OutCall> pending;
    std::set<std::uint64_t> given_up;             // failed without knowing; a reply may still come
    std::uint64_t received = 0;                   // as callee
    std::map<std::uint64_t, ReplyFrame> replies;  // as callee, until the caller has them
  };

  bool MayContain(const store::ObjectId& object) const;
  void PutSomething();
  void CallSomebody();
  void GetSomething(const store::ObjectId& id);
  void DropSomething();
  void EndRun(const ProcessId& caller, std::uint64_t number, const store::ObjectId& result,
              const std::vector<store::ObjectId>& args);
  store::Answer MakeResult(const ProcessId& caller, const store::ObjectId& result);
  std::optional<store::Value> Write(const store::ObjectId& object, bool assign_later);
  void FailCall(Session& session, std::uint64_t number, const ProcessId& peer);
  void Handle(const store::ObjectId& id);
  void Do(const store::Effect& effect);
  void CloseSegments();

  ObjectsWorld& world_;
  std::vector<store::ObjectId> handles_;  // an entry for each handle
  std::vector<store::ObjectId> seen_;     // every id that ever was here, the latest few
  std::set<store::ObjectId> waits_;
  std::map<ProcessId, Session> sessions_;
  std::size_t running_ = 0;
  std::set<ProcessId> acks_due_;
  Instant expiry_due_ = Instant::max();
};

}  // namespace troupe::sim
