// References between the two ends of a call session on different hosts, as one end keeps them:
// those it holds of the other one's objects (remote_held.h), each standing for an object of this
// process's store; those it has lent (remote_lent.h), each with a slot that holds the object.
//
// A reference that came becomes an object of this process's own, without a value
// (ObjectStore::TakeRemote). Where that is asked for, here or by another process of this host, the
// other end is asked; when its value came, it is this process's like any other, and the other end
// lets go of its own.
//
// Belongs to the mover's thread and is not locked.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/core/policy/denial_delay.h"
#include "actors/core/remote/remote_held.h"
#include "actors/core/remote/remote_lent.h"
#include "actors/objects/object_handles.h"
#include "actors/objects/object_store.h"
#include "actors/slots/answer.h"
#include "runtime/store/pool.h"

namespace troupe::actors {

class RemoteRefs {
 public:
  /// Begins to pull what lies under that name.
  using Pull =
      std::function<void(const store::ObjectId&, std::function<void(StatusOr<store::Writing>)>)>;
  /// Called on any thread: Came(name) is to be called on the mover's.
  using Notify = std::function<void(const store::ObjectId&)>;
  using Then = std::function<void(Handles)>;

  RemoteRefs(ObjectStore& store, Pull pull) : store_(store), pull_(std::move(pull)) {}
  RemoteRefs(const RemoteRefs&) = delete;
  RemoteRefs& operator=(const RemoteRefs&) = delete;

  /// Before anything is taken or lent: who asks for values, who tells of them.
  void Begin(std::shared_ptr<RemoteSource> source, Notify notify);

  // -- references of the other end's --
  /// `then` gets one handle of each, in their order, once the other end knows that they are held,
  /// or never will.
  void Take(const std::vector<store::ObjectId>& names, Then then);
  void LetGo(const store::ObjectId& name, RemoteHeld::Local local) { held_.LetGo(name, local); }
  void Want(const store::ObjectId& name, RemoteHeld::Local local) { held_.Want(name, local); }
  void LentOn(const store::ObjectId& name, RemoteHeld::Local local, bool lent) {
    held_.LentOn(name, local, lent);
  }
  bool Awaits() const { return held_.Awaits(); }
  /// The other end does not answer: what it was asked to keep is lost.
  void GiveUpAsked(const std::string& why);

  // -- references lent --
  bool Gives(const store::ObjectId& name) const {
    return lent_.Lends(name) || lent_.GivesInside(name);
  }
  /// The bytes of one that is lent, and has its value, and what keeps them; nullptr: they lie in
  /// memory, as `*object`.
  std::shared_ptr<const void> ValueOf(const store::ObjectId& name, std::string_view* bytes,
                                      store::ObjectId* object) const;
  /// The value of one that is lent is there.
  void Came(const store::ObjectId& name) { ready_.push_back(name); }

  // -- words --
  /// An error: they break the rules.
  Status TakeWord(const BulkFrame& frame);
  /// Answers what was asked. `given`: what else the other end may have. False: the first of it was
  /// not given in this round, and may have been in one that has begun.
  template <class Given>
  bool AnswerAsked(std::uint64_t round, std::string& out, Given given) {
    while (!asked_.empty()) {
      const BulkFrame ask = asked_.front();
      const bool known = ask.word == BulkWord::kLetGo || Gives(ask.id) || given(ask.id);
      if (!doubt_.Settled(known, round)) return false;
      asked_.pop_front();
      AnswerOne(ask, known, out);
    }
    return true;
  }
  /// Appends the frames that this end has to send.
  void AppendWords(std::string& out);
  void Unlinked();

  /// The other end is gone, or taken for gone: nothing is lent to it, and what came from it and has
  /// no value is lost.
  void End(ErrorCode code, const std::string& why);
  /// Nobody holds anything.
  bool idle() const { return held_.empty() && lent_.empty(); }
  /// Nothing that a link, if it is lost, would have to be made for again.
  bool Over() const { return held_.OnlyLeaving() && lent_.empty(); }

 private:
  struct Taking;
  struct Arriving;
  void AnswerOne(const BulkFrame& ask, bool known, std::string& out);
  void Settle(const store::ObjectId& name);
  void Fail(const store::ObjectId& name, RemoteHeld::Local local, ErrorCode code,
            const std::string& why);
  void Fetch(RemoteHeld::Value value);
  void Arrived(const std::shared_ptr<Arriving>& arriving);
  void Asked(const store::ObjectId& name);
  void TellOf(const store::ObjectId& name, std::string& out);

  ObjectStore& store_;
  const Pull pull_;
  std::shared_ptr<RemoteSource> source_;
  Notify notify_;
  RemoteHeld held_;
  // by what the other end has not answered
  std::multimap<store::ObjectId, std::shared_ptr<Taking>> taking_;
  RemoteLent lent_;
  std::map<store::ObjectId, AnswerRef> slots_;  // by reference lent: what holds its object
  // values that name references, as the other end knows them
  std::map<store::ObjectId, std::shared_ptr<const std::string>> renamed_;
  std::deque<BulkFrame> asked_;
  Doubt doubt_;  // about the first of `asked_`
  std::deque<store::ObjectId> ready_;
};

}  // namespace troupe::actors
