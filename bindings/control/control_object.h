// ControlClient as Python holds it: a client, and the key and certificate it may dial workers with.
//
// Every wait releases the GIL; on the main thread it returns to Python every 50 ms, so that Ctrl-C
// ends it. Errors leave as exceptions of the package's error factory.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "actors/net/call_tls.h"
#include "bindings/support/nanobind.h"
#include "runtime/base/mutex.h"
#include "runtime/client/control_client.h"
#include "runtime/client/process_identity.h"

namespace troupe::bindings {

/// How connect() was asked to prove this process.
struct ConnectArguments {
  std::string role = "client";
  std::string name;
  std::string token;       // text; or
  std::string token_file;  // file of the token
  double timeout_s = 5.0;
  bool certificate = true;  // ask the head for one; a worker issues none
  double return_s = 0.0;    // how long a lost connection is sought again
};

class ControlObject {
 public:
  explicit ControlObject(std::shared_ptr<client::ControlClient> client);
  ~ControlObject();
  ControlObject(const ControlObject&) = delete;
  ControlObject& operator=(const ControlObject&) = delete;

  static std::unique_ptr<ControlObject> Connect(const net::Address& address,
                                                const ConnectArguments& arguments);
  static std::unique_ptr<ControlObject> Adopt(int fd, const std::string& peer);
  /// A connection to another worker of the cluster, by this process's certificate.
  std::unique_ptr<ControlObject> ConnectWorker(const std::string& host, int port,
                                               const std::string& node, double timeout_s);

  nanobind::tuple Request(const std::string& kind, nanobind::object fields,
                          nanobind::object attachment, std::optional<double> timeout_s);
  bool Ask(const std::string& kind, nanobind::object fields, nanobind::object attachment);
  void Send(const std::string& kind, nanobind::object fields, nanobind::object attachment);
  nanobind::object NextPush(std::optional<double> timeout_s);
  /// Returns all pushes that have come, a hundred at most; waits for the first.
  nanobind::list NextPushes();
  /// Closes the connection, and waits (a second at most) until every other thread has left its wait
  /// with the GIL in hand: one that asked for the GIL while the interpreter ends would be unwound
  /// through C++ and end the process.
  void Close();

  const client::ControlClient& client() const { return *client_; }
  /// Returns this process's identity in calls between hosts; made at its first use.
  actors::IdentitySource identity() const;

 private:
  /// Counts a thread from before it releases the GIL until after it has it again.
  class InWait;

  std::shared_ptr<client::ControlClient> client_;
  std::shared_ptr<client::ProcessIdentity> identity_;
  Mutex waits_mutex_;
  CondVar waits_over_;
  int waits_ ABSL_GUARDED_BY(waits_mutex_) = 0;
};

}  // namespace troupe::bindings
