// A link from one process to one actor: the channel its calls take, its restarts, its death.
//
// View: one process. Thread-safe; nothing here blocks but dialling a socket of this host. Calls
// made before the actor is alive wait in the channel, encoded, and leave when it is. When it is
// started again, calls under way end as the channel says and later ones wait in the next channel.
// Made by Session::LinkTo, one per actor; lives in a shared_ptr.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/api/core/link_state.h"
#include "actors/caller/channel.h"
#include "actors/net/call_tls.h"
#include "runtime/base/ids.h"
#include "runtime/base/mutex.h"

namespace troupe::api {

class ActorLink : public std::enable_shared_from_this<ActorLink> {
 public:
  ActorLink(const ActorId& actor, std::string class_name, actors::IdentitySource identity);

  const ActorId& actor() const { return actor_; }
  /// "actor Counter(1a2b3c4d)"
  const std::string& label() const { return label_; }
  /// Returns the channel for the next call. If its end is known, the channel answers each call with
  /// the error.
  StatusOr<std::shared_ptr<actors::Channel>> Open() ABSL_LOCKS_EXCLUDED(mutex_);
  /// The head's word.
  void Told(const wire::ActorInfo& info) ABSL_LOCKS_EXCLUDED(mutex_);
  /// Ends the link, as the actor is dead or out of reach for good: calls end with this, later ones
  /// too.
  void End(ErrorCode code, const std::string& text) ABSL_LOCKS_EXCLUDED(mutex_);
  bool dead() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Lost;
  struct Verdict {
    ErrorCode code;
    std::string text;
  };
  void ObeyLocked(LinkOrder order, const wire::ActorInfo& info)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FailLocked(ErrorCode code, const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AimLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnLost(const actors::Channel* channel) ABSL_LOCKS_EXCLUDED(mutex_);

  const ActorId actor_;
  const std::string label_;
  const actors::IdentitySource identity_;

  Mutex mutex_;
  LinkState state_ ABSL_GUARDED_BY(mutex_);
  // The actor's address, while it is alive
  std::optional<wire::ActorAddress> alive_ ABSL_GUARDED_BY(mutex_);
  std::optional<Verdict> verdict_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<actors::Channel> channel_ ABSL_GUARDED_BY(mutex_);  // none until the next call
  // Channels that have lost their connection, with calls that wait for a verdict.
  std::vector<std::shared_ptr<actors::Channel>> lost_ ABSL_GUARDED_BY(mutex_);
};

/// How a dead actor's end is told to people.
std::string DeathText(const wire::ActorInfo& info, const std::string& label);

}  // namespace troupe::api
