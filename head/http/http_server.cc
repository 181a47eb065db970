#include "head/http/http_server.h"

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "head/http/access.h"
#include "head/http/acts/acts.h"
#include "head/http/logs/logs.h"
#include "head/http/rate_limit.h"
#include "head/http/request_reader.h"
#include "head/http/routes.h"
#include "head/http/streams.h"
#include "runtime/async/deadline.h"
#include "runtime/async/scope.h"
#include "runtime/base/log.h"
#include "runtime/base/seldom.h"

namespace troupe::head {
namespace {

using async::Task;

constexpr std::size_t kBlockBytes = 8 * 1024;
constexpr std::size_t kDrainedBytesMax = 1024 * 1024;
constexpr std::chrono::seconds kDrainLimit{1};

HttpResponse TooMany() {
  HttpResponse response = ErrorResponse(429, "too many requests: wait a second");
  response.headers.emplace_back("Retry-After", "1");
  return response;
}

}  // namespace

class HttpServer::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(const async::Executor& executor, HeadSide head)
      : head_(head),
        answers_(executor, head),
        acts_(head, answers_),
        streams_(std::make_shared<Streams>(executor, head)),
        logs_(std::move(head), answers_, streams_),
        scope_(executor, "HTTP") {}

  ChangeFeed& feed() { return streams_->feed(); }

  void Receive(net::HttpArrival arrival) {
    if (scope_.running() >= kConnectionsMax) {
      if (const auto more = refused_.Due(head_.clock.Now())) {
        Log(LogLevel::kWarning, "too many HTTP connections: one was closed",
            {{"peer", arrival.peer.address}, {"not_said_before", *more}});
      }
      return;
    }
    scope_.Spawn("connection", Serve(shared_from_this(), std::move(arrival)));
  }

 private:
  static Task<void> Serve(std::shared_ptr<Impl> self, net::HttpArrival arrival) {
    RequestReader reader;
    for (;;) {
      const bool known = arrival.ticket == nullptr;
      auto reading = ReadRequest(*arrival.stream, reader, known, self->head_.clock);
      const std::optional<RequestReader::Step> step = co_await std::move(reading);
      if (!step) break;
      if (*step == RequestReader::Step::kBad) {
        auto refusing = Finish(*arrival.stream, reader.refusal());
        co_await std::move(refusing);
        break;
      }
      const HttpRequest& request = reader.request();
      auto admitting = self->Admit(request, arrival);
      Admission admitted = co_await std::move(admitting);
      if (request.body_bytes > 0) {
        auto taking = TakeBody(*arrival.stream, reader, admitted, self->head_.clock);
        if (!co_await std::move(taking)) break;
      }
      const RouteMatch match = admitted.match;
      const HttpCaller caller = admitted.caller;
      auto answering = self->Answer(std::move(admitted), request);
      const HttpResponse response = co_await std::move(answering);
      if (response.stream) {
        auto streaming = IsLog(match.route->id)
                             ? self->logs_.Follow(arrival, request, match, caller)
                             : self->streams_->Run(arrival, request);
        co_await std::move(streaming);
        co_return;
      }
      const std::string text =
          FormatResponse(response, request.method == "HEAD", request.keep_alive);
      auto writing = arrival.stream->Write(text);
      const Status sent = co_await async::WithDeadline(std::move(writing), Duration(kRequestLimit),
                                                       "an HTTP response to be taken");
      if (!sent.ok() || !request.keep_alive) break;
    }
    arrival.stream->Close();
  }

  /// nullopt: the peer has gone, or was too slow.
  static Task<std::optional<RequestReader::Step>> ReadRequest(net::Stream& stream,
                                                              RequestReader& reader, bool known,
                                                              const Clock& clock) {
    std::vector<char> block(kBlockBytes);
    RequestReader::Step step = reader.Feed({});
    Instant end = clock.Now() + kRequestLimit;
    while (step == RequestReader::Step::kMore) {
      const bool idle = known && !reader.begun();
      const Duration limit = idle ? Duration(kIdleLimit) : end - clock.Now();
      if (limit <= Duration(0)) break;
      auto reading = stream.Read(block.data(), block.size());
      const StatusOr<std::size_t> n =
          co_await async::WithDeadline(std::move(reading), limit, "an HTTP request");
      if (!n.ok() && ErrorCodeOf(n.status()) == ErrorCode::kTimeout && reader.begun()) break;
      if (!n.ok() || *n == 0) co_return std::nullopt;
      if (idle) end = clock.Now() + kRequestLimit;
      step = reader.Feed({block.data(), *n});
    }
    if (step != RequestReader::Step::kMore) co_return step;
    auto refusing = Finish(stream, ErrorResponse(408, "the request did not come within 10 s"));
    co_await std::move(refusing);
    co_return std::nullopt;
  }

  struct Admission {
    RouteMatch match;
    HttpCaller caller;
    std::optional<HttpResponse> refusal;
  };

  /// Reads the body of a request whose caller may ask for a route that takes one. False: it was
  /// refused, or did not come.
  static Task<bool> TakeBody(net::Stream& stream, RequestReader& reader, Admission& admitted,
                             const Clock& clock) {
    if (!admitted.refusal && !Acts(*admitted.match.route))
      admitted.refusal = ErrorResponse(413, "this route takes no body");
    if (admitted.refusal) {
      auto refusing = Finish(stream, *std::move(admitted.refusal));
      co_await std::move(refusing);
      co_return false;
    }
    if (reader.request().waits_to_send) {
      const std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n";
      auto asking = stream.Write(go_on);
      const Status asked = co_await async::WithDeadline(std::move(asking), Duration(kRequestLimit),
                                                        "the peer to take 100 Continue");
      if (!asked.ok()) co_return false;
    }
    std::vector<char> block(kBlockBytes);
    const Instant end = clock.Now() + kRequestLimit;
    bool whole = reader.FeedBody({});
    while (!whole && clock.Now() < end) {
      auto reading = stream.Read(block.data(), block.size());
      const StatusOr<std::size_t> n =
          co_await async::WithDeadline(std::move(reading), end - clock.Now(), "an HTTP body");
      if (!n.ok() && ErrorCodeOf(n.status()) == ErrorCode::kTimeout) break;
      if (!n.ok() || *n == 0) co_return false;
      whole = reader.FeedBody({block.data(), *n});
    }
    if (whole) co_return true;
    auto refusing = Finish(stream, ErrorResponse(408, "the body did not come within 10 s"));
    co_await std::move(refusing);
    co_return false;
  }

  /// Says why the connection ends. What the peer still sends is read for a moment: a socket that is
  /// closed with unread bytes would take the answer with it.
  static Task<void> Finish(net::Stream& stream, HttpResponse response) {
    const std::string text = FormatResponse(response, false, false);
    auto writing = stream.Write(text);
    const Status sent =
        co_await async::WithDeadline(std::move(writing), Duration(kDrainLimit), "an HTTP refusal");
    if (!sent.ok()) co_return;
    auto draining = Drain(stream);
    const Status drained =
        co_await async::WithDeadline(std::move(draining), Duration(kDrainLimit), "the peer's end");
    (void)drained;  // either way it is closed now
  }
  static Task<Status> Drain(net::Stream& stream) {
    std::vector<char> block(kBlockBytes);
    for (std::size_t drained = 0; drained < kDrainedBytesMax;) {
      TROUPE_CO_ASSIGN(const std::size_t n, co_await stream.Read(block.data(), block.size()));
      if (n == 0) break;
      drained += n;
    }
    co_return Status();
  }

  /// Decides whether the caller may use the route. Nothing of a body has been read by then.
  Task<Admission> Admit(const HttpRequest& request, net::HttpArrival& arrival) {
    Admission admitted;
    admitted.match = FindRoute(request.method, request.path);
    const RouteMatch& match = admitted.match;
    const bool open = match.route != nullptr && !match.route->kind;
    if (open && !unknown_rate_.Take(arrival.peer.host, head_.clock.Now()))
      admitted.refusal = TooMany();
    if (open) co_return admitted;
    auto authenticating =
        AuthenticateHttp(request, arrival.peer, head_.rules, head_.executor, head_.clock);
    const StatusOr<HttpCaller> caller = co_await std::move(authenticating);
    if (!caller.ok()) {
      admitted.refusal = Unknown(caller.status(), arrival.peer);
      co_return admitted;
    }
    arrival.ticket.reset();
    admitted.caller = *caller;
    if (!rate_.Take(caller->id, head_.clock.Now())) {
      admitted.refusal = TooMany();
    } else if (match.route == nullptr) {
      admitted.refusal = NoRoute(match);
    } else if (!MayAsk(*match.route, caller->role)) {
      const std::string wanted = Acts(*match.route) ? "client" : "observer";
      admitted.refusal = ErrorResponse(403, std::string("the role ") + wire::NameOf(caller->role) +
                                                " may not ask for this\n  make a token of the "
                                                "role " + wanted);
    }
    co_return admitted;
  }

  Task<HttpResponse> Answer(Admission admitted, const HttpRequest& request) {
    if (admitted.refusal) co_return *std::move(admitted.refusal);
    if (admitted.match.route->id == RouteId::kStream) co_return BeginStream(*streams_, request);
    if (Acts(*admitted.match.route)) {
      auto acting = acts_.Do(admitted.match, request, admitted.caller);
      co_return co_await std::move(acting);
    }
    if (IsLog(admitted.match.route->id)) {
      auto reading = logs_.Tell(admitted.match, request, admitted.caller);
      co_return co_await std::move(reading);
    }
    auto telling = answers_.Tell(admitted.match, request);
    co_return co_await std::move(telling);
  }

  HttpResponse Unknown(const Status& why, const net::PeerInfo& peer) {
    if (ErrorCodeOf(why) == ErrorCode::kTimeout) return ErrorResponse(503, MessageOf(why));
    // By the host: a token that is good is never refused for what others do.
    if (!unknown_rate_.Take(peer.host, head_.clock.Now())) return TooMany();
    if (const auto more = unknown_.Due(head_.clock.Now())) {
      Log(LogLevel::kWarning, "an HTTP request was refused",
          {{"peer", peer.address}, {"why", MessageOf(why)}, {"not_said_before", *more}});
    }
    HttpResponse response = ErrorResponse(401, MessageOf(why));
    response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"troupe\"");
    return response;
  }

  static HttpResponse NoRoute(const RouteMatch& match) {
    if (match.allow.empty()) return ErrorResponse(404, "there is nothing at this path");
    HttpResponse response = ErrorResponse(405, "this path takes " + match.allow);
    response.headers.emplace_back("Allow", match.allow);
    return response;
  }

  const HeadSide head_;
  Answers answers_;
  HttpActs acts_;
  const std::shared_ptr<Streams> streams_;
  Logs logs_;
  RateLimit rate_{kPerSecond, kBurst};
  RateLimit unknown_rate_{kUnknownPerSecond, kUnknownBurst};
  Seldom refused_;
  Seldom unknown_;
  async::Scope scope_;
};

HttpServer::HttpServer(async::Executor executor, HeadSide head)
    : impl_(std::make_shared<Impl>(executor, std::move(head))) {}
HttpServer::~HttpServer() = default;

ChangeFeed& HttpServer::feed() { return impl_->feed(); }

std::function<void(net::HttpArrival)> HttpServer::Receiver() const {
  return [impl = impl_](net::HttpArrival arrival) { impl->Receive(std::move(arrival)); };
}

}  // namespace troupe::head
