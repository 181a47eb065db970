// The head's HTTP server: health, metrics and views of the cluster, for programs.
//
// View: one head process. Connections come from the head's own port, where ALPN selected http/1.1
// (runtime/net/listener.h). All of it runs on a loop of its own; of the head's loop it asks what it
// needs, as a value, so that a slow reader or a flood of requests costs the reducer nothing but
// that. It keeps no session and sets no cookie.
//   HS-1  Before a caller is known only the head of a request is read (16 KiB, 10 s), and nothing
//         but /healthz and /readyz is answered. A body is read (1 MiB, 10 s) when its caller may
//         ask for its route.
//   HS-2  Who may ask for what stands in routes.h, which reads the role table of all messages.
//   HS-3  kConnectionsMax at a time; a caller makes kPerSecond requests, a host that is not known
//         kUnknownPerSecond.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

#include "head/http/answers.h"
#include "head/http/change_feed.h"
#include "runtime/net/listener.h"

namespace troupe::head {

class HttpServer {
 public:
  static constexpr std::size_t kConnectionsMax = 256;
  static constexpr std::chrono::seconds kRequestLimit{10};
  static constexpr std::chrono::seconds kIdleLimit{75};
  static constexpr double kPerSecond = 100, kBurst = 400;
  static constexpr double kUnknownPerSecond = 20, kUnknownBurst = 400;

  /// `executor` is the loop it runs on.
  HttpServer(async::Executor executor, HeadSide head);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Returns the receiver of connections from the listener: runs on the server's loop, and may be
  /// called later than this object lives.
  std::function<void(net::HttpArrival)> Receiver() const;
  /// On the head's loop: what is told of each step of the reducer.
  ChangeFeed& feed();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace troupe::head
