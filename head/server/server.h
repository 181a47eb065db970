// The shell around HeadCore: sessions, journal and timer of production.
//
// View: one head process; everything on one loop, the journal on its thread, TLS handshakes on
// theirs. It decides nothing: it turns bytes into inputs and effects into bytes. Lifetime: Start,
// run the loop until on_end was called, destroy.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "head/core/head_core.h"
#include "head/http/http_server.h"
#include "head/journal/journal_thread.h"
#include "head/server/archive_link.h"
#include "head/server/http_callers.h"
#include "head/server/job_log_link.h"
#include "runtime/async/loop_thread.h"
#include "runtime/async/scope.h"
#include "runtime/async/timer.h"
#include "runtime/base/seldom.h"
#include "runtime/net/authority.h"
#include "runtime/net/listener.h"
#include "runtime/net/session.h"

namespace troupe::head {

struct ServerOptions {
  net::Address tcp;         // port 0: any
  std::string socket_path;  // for the same user on this host
  std::string host_name;
  bool local_clients = true;
  async::Executor handshakes;
  async::LoopThread* http = nullptr;  // loop that serves HTTP; it must outlive the head's loop
  ArchiveLink* archive = nullptr;  // archive of ended launches
  JobLogLink* job_logs = nullptr;  // archive of the last output of jobs
  ReadArchive read_archive;              // for HTTP, on the thread of that
  std::uint64_t snapshot_every = 20000;  // events
  std::uint64_t replayed = 0;            // at start
  std::string journal_folder;  // folder whose size is reported; empty: none
};

class Server {
 public:
  /// All references must outlive the server. `on_end(status)` is called once, on the loop: ok after
  /// a request to stop, else what broke.
  Server(const async::Executor& executor, const Clock& clock, Random& random,
         const net::Authority& authority, HeadCore& core, Journal& journal, ServerOptions options,
         std::function<void(Status)> on_end);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Listens, begins the new incarnation. Errors: the listener's (a port that is taken, and by
  /// whom).
  Status Start();
  /// Accepts nothing more, closes sessions without a word to workers (they survive a head).
  void Stop();

  /// "host:port", with the port that was taken.
  std::string address() const;

 private:
  Status Listen();
  Status UseNewCertificate();
  std::vector<std::string> HttpNames() const;
  StatusOr<net::Credentials> CredentialsFor(wire::Role role, const TokenId& token) const;
  void OnConnection(std::shared_ptr<net::Connection> connection);
  async::Task<void> Serve(std::shared_ptr<net::Connection> connection);
  void OnMessage(const SessionId& session, wire::Message message);
  void Feed(const Input& input);
  void Perform(Effects effects);
  void EndBatch();
  void Deliver(const Send& send);
  void OnDurable(std::uint64_t sequence, bool low_space);
  void RenewIfDue();
  void TakeSnapshot();
  async::Task<void> End(std::shared_ptr<net::Connection> connection);
  async::Task<void> EndAll();
  void Issue(const Certify& certify);
  async::Task<void> ProbeNode(Probe probe);
  net::SessionRules RulesNow() const;

  const async::Executor executor_;
  const Clock& clock_;
  Random& random_;
  const net::Authority& authority_;
  HeadCore& core_;
  const ServerOptions options_;
  std::function<void(Status)> on_end_;
  net::SessionRules rules_;
  ShellWatch watch_;
  HttpCallers callers_;
  HttpServer http_;
  std::unique_ptr<net::Listener> unix_;
  std::unique_ptr<net::Listener> tcp_;
  std::map<SessionId, std::shared_ptr<net::Connection>> sessions_;
  async::Scope scope_;
  async::Timer timer_;
  struct Shown {
    net::Validity validity;  // how long the certificate that new connections see is good
    Instant next_renewal;    // after one that failed
  };
  Shown shown_;
  Seldom refused_;
  bool ended_ = false;
  bool low_space_ = false;
  struct Batch {
    std::vector<Row> rows;
    bool plan_wanted = false;  // at its end
    bool end_posted = false;
  };
  Batch batch_;
  std::uint64_t since_snapshot_ = 0;  // rows that a start would read besides one
  JournalThread journal_;             // last: its callbacks post to the members above
};

}  // namespace troupe::head
