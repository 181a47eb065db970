// The state that a handle of an actor holds.
#pragma once

#include <memory>
#include <utility>

#include "actors/api/actor_link.h"
#include "actors/api/session.h"

namespace troupe {

class ActorState {
 public:
  /// `owns`: the actor ends with the last handle.
  ActorState(std::shared_ptr<api::Session> session, std::shared_ptr<api::ActorLink> link, bool owns)
      : session_(std::move(session)), link_(std::move(link)), owns_(owns) {}
  ~ActorState();
  ActorState(const ActorState&) = delete;
  ActorState& operator=(const ActorState&) = delete;

  api::ActorLink& link() const { return *link_; }
  api::Session& session() const { return *session_; }
  bool owns() const { return owns_; }

 private:
  const std::shared_ptr<api::Session> session_;
  const std::shared_ptr<api::ActorLink> link_;
  const bool owns_;
};

}  // namespace troupe
