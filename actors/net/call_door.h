// The acceptor of callers from other hosts: takes connections over from the worker, does the TLS
// handshake, and hands them established to the serving thread.
//
// View: one actor's process. The work is done on the TlsLoop's thread, so that callers get in while
// a method runs. Before the handshake is done nothing of a peer is decoded; it must show a
// certificate of the cluster for a client or a process. At most kHandshakesMax handshakes are under
// way, 16 of one address, kHandshakeLimit each; a connection over that is closed, and its caller
// tries again. What is established waits in Take's queue, kWaitingMax at most.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/net/call_stream.h"
#include "actors/net/call_tls.h"
#include "actors/net/tls_loop.h"

namespace troupe::actors {

class CallDoor {
 public:
  static constexpr std::size_t kHandshakesMax = 64;
  static constexpr std::size_t kHandshakesPerHostMax = 16;
  static constexpr std::size_t kWaitingMax = 4096;
  static constexpr std::chrono::seconds kHandshakeLimit{5};  // from the handover on

  /// The receiver of established connections that are links for large values, on the TlsLoop's
  /// thread; it must not block.
  using LinkSink = std::function<void(CallStream)>;
  /// Takes over at net::HandoverPath(call_socket). `wake_fd` is an eventfd written to whenever Take
  /// has something; it must outlive the door.
  static StatusOr<std::unique_ptr<CallDoor>> Open(const std::string& call_socket,
                                                  IdentitySource identity, int wake_fd,
                                                  LinkSink links);
  /// Not in a forked child, where it is inert.
  ~CallDoor();
  CallDoor(const CallDoor&) = delete;
  CallDoor& operator=(const CallDoor&) = delete;

  /// Returns the connections established since the last call. Any thread.
  std::vector<CallStream> Take();

 private:
  struct State;
  explicit CallDoor(std::shared_ptr<State> state) : state_(std::move(state)) {}
  static async::Task<void> Accept(std::shared_ptr<State> state);
  static async::Task<void> Receive(std::shared_ptr<State> state, std::shared_ptr<LoopSocket> giver);
  static async::Task<Status> Greet(std::shared_ptr<State> state, std::shared_ptr<LoopSocket> giver);

  std::shared_ptr<State> state_;
};

}  // namespace troupe::actors
