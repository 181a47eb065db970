// The stream a Channel and a CallerConnection are built on: a Unix socket of this host, or TLS to
// another one.
//
// Non-blocking; one thread reads, any thread writes under its owner's mutex. The Unix case costs
// one comparison. Movable; the descriptor is closed with the object, Shutdown ends both directions
// before.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "actors/core/call/io_result.h"
#include "actors/net/fork_guard.h"
#include "actors/net/tls_pipe.h"
#include "actors/net/unix_stream.h"

namespace troupe::actors {

class CallStream {
 public:
  CallStream() = default;
  explicit CallStream(UnixStream socket) : socket_(std::move(socket)) {}
  /// `peer` is how errors and logs call the other end, `identity` what its certificate says.
  /// `watch` is dropped before the socket is closed.
  CallStream(GuardedFd fd, std::unique_ptr<net::TlsEngine> engine, std::string peer,
             std::string identity, std::shared_ptr<void> watch = nullptr)
      : watch_(std::move(watch)),
        socket_(std::move(fd)),
        tls_(std::make_unique<TlsPipe>(socket_.fd(), std::move(engine))),
        peer_(std::move(peer)),
        identity_(std::move(identity)) {}
  // The watch is let go of before the descriptor, which another thread may get at once: at an
  // assignment by the order of the members, at the end by this destructor.
  CallStream(CallStream&&) = default;
  CallStream& operator=(CallStream&&) = default;
  ~CallStream() { watch_.reset(); }

  IoResult TryRead(char* into, std::size_t bytes) {
    return tls_ == nullptr ? socket_.TryRead(into, bytes) : tls_->Read(fd(), into, bytes);
  }
  IoResult TryWrite(const char* from, std::size_t bytes) {
    return tls_ == nullptr ? socket_.TryWrite(from, bytes) : tls_->Write(fd(), from, bytes);
  }
  /// Bytes that TryWrite took are still here: call it again when the socket is writable.
  bool HasUnsent() const { return tls_ != nullptr && tls_->HasUnsent(); }
  int fd() const { return socket_.fd(); }
  /// Returns true if the other end is on another host.
  bool away() const { return tls_ != nullptr; }
  void Shutdown() { socket_.Shutdown(); }
  /// "pid 12", or the address and identity of a peer on another host.
  std::string Peer() const {
    return tls_ == nullptr ? "pid " + std::to_string(socket_.PeerPid()) : peer_;
  }
  /// The identity authenticated at the other end: tells it from all others. A Unix socket admits
  /// this user alone.
  const std::string& identity() const { return identity_; }
  /// Words for an IoResult that ended.
  std::string WhyEnded(const IoResult& ended) const;

 private:
  std::shared_ptr<void> watch_;  // ends the connection when its certificate's token is revoked
  UnixStream socket_;
  std::unique_ptr<TlsPipe> tls_;
  std::string peer_;
  std::string identity_ = "this user";
};

}  // namespace troupe::actors
