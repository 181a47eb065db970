// The server's sessions: what callers say besides calls, how they come, come back, and go.
#include <absl/strings/str_format.h>

#include <memory>
#include <string>

#include "actors/net/now.h"
#include "actors/server/call_server.h"
#include "runtime/base/log.h"

namespace troupe::actors {

/// False: this connection is over, or has become another peer's.
bool CallServer::TakeControl(CallerConnection& peer, const Frame& frame) {
  if (frame.head.flags != kFlagControl) return Refuse(peer, "a frame that is no call");
  const StatusOr<CallControl> control = ParseControl(frame);
  if (!control.ok()) return Refuse(peer, MessageOf(control.status()));
  switch (control->kind) {
    case ControlKind::kHello:
      return Greet(peer, *control, frame);
    case ControlKind::kAck:
      if (!peer.Acknowledge(frame.head.ack)) {
        return Refuse(peer, "an acknowledgement of replies that it was not given");
      }
      break;
    case ControlKind::kWho:
      if (!peer.session_id || peer.received() != 0)
        return Refuse(peer, "its name, after its calls");
      peer.process = ProcessId(control->session.hi, control->session.lo);
      break;
    case ControlKind::kEnd:
      static_cast<void>(peer.Acknowledge(frame.head.ack));
      if (peer.session_id) sessions_.End(*peer.session_id);
      peer.session_id.reset();
      break;
    case ControlKind::kTaken:
    case ControlKind::kCancel:
      peer.TakeWord(*control, frame.bytes);
      return true;
    case ControlKind::kWelcome:
      return Refuse(peer, "a welcome, which is this side's to say");
  }
  peer.in().Consume(frame.bytes);
  return true;
}

bool CallServer::Greet(CallerConnection& peer, const CallControl& hello, const Frame& frame) {
  if (peer.session_id || peer.received() != 0)
    return Refuse(peer, "a hello that does not come first");
  if (!hello.resumes) {
    if (!sessions_.Begin(hello.session, peer.identity(), peer.shared_from_this())) {
      return Refuse(peer, "a hello for a session that exists");
    }
    peer.Welcome(hello.session);
    peer.in().Consume(frame.bytes);
    return true;
  }
  std::shared_ptr<CallerConnection>* const found = sessions_.Find(hello.session, peer.identity());
  if (found == nullptr) {
    return Refuse(
        peer, absl::StrFormat("a session to resume that is not known here (this actor keeps %d "
                              "lost ones for %d min)",
                              SessionTable<int>::kDetachedMax, SessionTable<int>::kKept.count()));
  }
  const std::shared_ptr<CallerConnection> before = *found;
  if (peer.in().size() != frame.bytes) return Refuse(peer, "more before it was welcomed");
  const std::string who = peer.who();
  if (!before->Resume(peer, frame.head.ack)) {
    Drop(*before);
    return Refuse(peer, "a session to resume whose replies are not kept any more (32 MiB are)");
  }
  sessions_.Attach(hello.session);
  Drop(peer);
  peers_[before->id()] = before;
  hot_ = before;
  Log(LogLevel::kInfo, "caller came back",
      {{"who", who}, {"calls", std::to_string(before->received())}});
  return false;
}

/// The connection ended: its caller may come back.
void CallServer::Lose(CallerConnection& peer) {
  if (!peer.session_id) return Drop(peer);
  const std::shared_ptr<CallerConnection> keep = peer.shared_from_this();
  if (hot_ == keep) hot_.reset();
  peers_.erase(peer.id());
  peer.Detach();
  sessions_.Detach(*peer.session_id, Now());
  ExpireSessions();
}

void CallServer::Drop(CallerConnection& peer) {
  const std::shared_ptr<CallerConnection> keep = peer.shared_from_this();
  if (hot_ == keep) hot_.reset();
  if (peer.session_id) sessions_.End(*peer.session_id);
  peer.Close();
  peers_.erase(peer.id());
}

void CallServer::ExpireSessions() {
  const auto gone = sessions_.Expire(
      Now(), [](const std::shared_ptr<CallerConnection>& peer) { return peer->KeptBytes(); });
  for (const std::shared_ptr<CallerConnection>& peer : gone) {
    peer->Close();
    peer->session.reset();
  }
}

}  // namespace troupe::actors
