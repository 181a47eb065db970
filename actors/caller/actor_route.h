// The way to a channel's actor: how it is reached at first, and again when the connection is lost.
//
// An actor on this host is a socket path, one on another host a process behind its worker's port.
// The route may be made before it is known which (`aimed` is false): it is then aimed once, or
// never.
//
// A part of Channel, for its view of one actor. Takes no lock: the channel's mutex guards it.
// Nothing here blocks: dialling runs on the TlsLoop's thread, a redial within this host on the
// reactor's background thread, and both hold the user of the connection weakly and call it without
// any lock.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "actors/core/session/redial_policy.h"
#include "actors/net/call_stream.h"
#include "actors/net/call_tls.h"
#include "actors/slots/completions.h"
#include "runtime/async/task.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"

namespace troupe::actors {

/// The receiver of the connection. Each function is called without a lock held.
class RouteUser {
 public:
  virtual ~RouteUser() = default;
  /// Returns true if a connection is still wanted.
  virtual bool WantsConnection() = 0;
  virtual void Attach(CallStream stream) = 0;
  /// The actor cannot be reached, and nobody tries any more.
  virtual void GiveUp(const Status& why) = 0;
  /// The process on this host is gone, or going: more is known of it soon.
  virtual void LoseActor() = 0;
};

class ActorRoute {
 public:
  /// `grace`: for how long a lost connection is made anew.
  explicit ActorRoute(Duration grace) : grace_(grace), redial_(grace, /*once=*/false) {}

  /// Sets the actor's address. False: it is aimed already, or the channel is over.
  bool AimHere(std::string path);
  bool AimRemote(RemoteActor target, IdentitySource identity);
  /// Nothing aims it any more.
  void Close() { aimless_ = false; }
  /// Returns true while the actor's address is not known.
  bool aimless() const { return aimless_; }
  /// A socket on this host.
  bool here() const { return !path_.empty(); }
  const std::string& path() const { return path_; }
  const RemoteActor& target() const { return target_; }
  const IdentitySource& identity() const { return identity_; }

  void Connected(Instant now) { redial_.Connected(now); }
  void Welcomed() { redial_.Welcomed(); }
  /// The connection is gone. Whether, and how, it is made anew: then Redial does it.
  std::optional<RedialPolicy::Step> Lost(Instant now, std::string_view reason);
  /// Why the last connection was lost; empty: none was.
  const std::string& lost_reason() const { return lost_reason_; }

  /// Reaches an actor on another host for the first time.
  void Dial(std::weak_ptr<RouteUser> user) const;
  void Redial(std::weak_ptr<RouteUser> user, RedialPolicy::Step step,
              Completions& completions) const;

 private:
  class RedialHere;
  static async::Task<void> Reach(std::weak_ptr<RouteUser> user, RemoteActor target,
                                 IdentitySource identity, RedialPolicy::Step step);
  void Spawn(const char* name, std::weak_ptr<RouteUser> user, RedialPolicy::Step step) const;

  const Duration grace_;
  bool aimless_ = true;
  std::string path_;  // empty: not on this host
  RemoteActor target_;
  IdentitySource identity_;
  RedialPolicy redial_;
  std::string lost_reason_;
};

}  // namespace troupe::actors
