// The worker's door: a Unix socket for this host's processes of the same user, one TLS port for
// other nodes and drivers. Whoever comes in proves itself first (net/session.h) and may then ask
// what Service answers. A connection that asks for a process of this node is handed over to it
// (net/handover.h).
//
// View: one node; on the worker's loop; TLS handshakes on another. Stop() closes the doors and the
// connections.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/async/scope.h"
#include "runtime/base/random.h"
#include "runtime/base/seldom.h"
#include "runtime/net/listener.h"
#include "runtime/net/revocations.h"
#include "runtime/net/session.h"
#include "worker/service.h"

namespace troupe::worker {

class PeerServer {
 public:
  struct Options {
    std::string unix_path;
    net::Address listen;  // TCP
    async::Executor handshakes;
    std::string node_name;
    /// Returns the socket of the process that serves calls at this id, or "": connections that ask
    /// for it by the TLS server name are handed over to it, unread.
    std::function<std::string(const ProcessId&)> call_socket_of;
  };
  /// References must outlive the server.
  PeerServer(async::Executor executor, const Clock& clock, Random& random, Service& service,
             BlobStore& blobs);
  ~PeerServer();

  Status Open(const Options& options, const net::Credentials& credentials);
  /// Shows a renewed certificate to connections from now on.
  Status Renew(const net::Credentials& credentials);
  /// Takes in which tokens are revoked, all of them, and closes the connections that came by them.
  void Revoke(const std::vector<TokenId>& tokens);
  void Stop();
  const net::Address& tcp_address() const { return tcp_->address(); }

 private:
  void PassOn(const std::string& server_name, UniqueFd connection);
  void Accept(std::shared_ptr<net::Connection> connection);
  async::Task<void> Serve(std::shared_ptr<net::Connection> connection);
  async::Task<void> AnswerOne(std::shared_ptr<net::Connection> connection, std::uint64_t asker,
                              wire::Message request, std::shared_ptr<int> open);

  const async::Executor executor_;
  const Clock& clock_;
  Random& random_;
  Service& service_;
  BlobStore& blobs_;
  net::SessionRules rules_;
  net::Revocations revocations_;
  Seldom refused_;
  // Connections that end with it
  std::multimap<TokenId, std::shared_ptr<net::Connection>> by_token_;
  std::function<std::string(const ProcessId&)> call_socket_of_;
  std::uint64_t next_asker_ = 1u << 20;  // below: processes of this node
  std::unique_ptr<net::Listener> unix_;
  std::unique_ptr<net::Listener> tcp_;
  async::Scope scope_;
};

}  // namespace troupe::worker
