#include "worker/peer_probe.h"

#include <unistd.h>

#include <utility>

#include "runtime/base/log.h"
#include "runtime/net/open_session.h"

namespace troupe::worker {

async::Task<bool> PeerAnswers(PeerToProbe peer, const Clock& clock) {
  const std::string where = peer.address.Text();
  net::OpenOptions options(peer.address);
  options.credentials = std::move(peer.credentials);
  options.expected.role = wire::Role::kWorker;
  options.expected.id = peer.node;
  options.hello.role = wire::Role::kWorker;
  options.hello.name = std::move(peer.own_name);
  options.hello.pid = getpid();
  options.limit = kPeerProbeLimit;
  auto opening = net::OpenSession(std::move(options), clock);
  StatusOr<net::OpenedSession> session = co_await std::move(opening);
  Log(LogLevel::kInfo, "asked whether a node answers, of which the head hears nothing",
      {{"node", peer.node.Short()}, {"at", where}, {"answer", session.ok() ? "it does" : MessageOf(session.status())}});
  if (!session.ok()) co_return false;
  session->connection->Close(MakeError(ErrorCode::kConnection, "it answers"));
  co_return true;
}

}  // namespace troupe::worker
