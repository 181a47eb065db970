#include "worker/peer_probe.h"

#include <utility>

#include "runtime/base/log.h"

namespace troupe::worker {

async::Task<bool> PeerAnswers(NodeId node, net::OpenOptions options, const Clock& clock) {
  const std::string where = options.address.Text();
  options.expected.id = node;
  options.limit = kPeerProbeLimit;
  auto opening = net::OpenSession(std::move(options), clock);
  StatusOr<net::OpenedSession> session = co_await std::move(opening);
  Log(LogLevel::kInfo, "asked whether a node answers, of which the head hears nothing",
      {{"node", node.Short()},
       {"at", where},
       {"answer", session.ok() ? "it does" : MessageOf(session.status())}});
  if (!session.ok()) co_return false;
  session->connection->Close(MakeError(ErrorCode::kConnection, "it answers"));
  co_return true;
}

}  // namespace troupe::worker
