// Streams of changes as server-sent events (`text/event-stream`): what `GET /api/v1/stream` gives.
//
//   event: changed   data: {"lists":["actors"]}     these lists are others now: ask for them again
//   event: event     data: {...}   id: 3-17         as /api/v1/events; for Last-Event-ID
//   event: lost      data: {"events":12}            so many came and went before they could be told
//   event: end       data: {"why":"..."}            nothing more comes: the token is over
//
//   ST-1  At most kMax streams; each takes a constant amount of memory, however slow its reader is.
//   ST-2  News are told at most four times a second; one that takes nothing for 10 s is dropped.
//         It comes back by Last-Event-ID, and is told how much it missed.
//   ST-3  A stream ends when the token or certificate that opened it is no longer in force: that is
//         asked before anything is told, and whenever a token changes.
//
// View: one head process; on the HTTP server's loop, held by shared_ptr.
#pragma once

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "head/http/answers.h"
#include "head/http/change_feed.h"
#include "runtime/async/scope.h"
#include "runtime/net/listener.h"

namespace troupe::head {

/// The place in the events that a stream has told up to.
struct StreamPlace {
  std::uint64_t number = 0;
  std::array<std::uint64_t, kChangedLists> versions{};
};

/// The text for what is new to `place`, which moves on; empty: nothing. `events` are the latest.
std::string NewsFor(StreamPlace* place, const Changes& now,
                    const std::deque<wire::ClusterEvent>& events);
/// Returns the place at which a stream with Last-Event-ID begins (empty: with later events), and
/// the note about that to send first.
std::string BeginAt(const std::string& last_event_id, const Changes& now,
                    const std::deque<wire::ClusterEvent>& events, StreamPlace* place);

class Streams : public std::enable_shared_from_this<Streams> {
 public:
  static constexpr std::size_t kMax = 100;
  static constexpr std::size_t kEventsMax = 1000;
  static constexpr std::chrono::milliseconds kPause{250};
  static constexpr std::chrono::seconds kBeat{15};
  static constexpr std::chrono::seconds kWriteLimit{10};

  /// `own` is the loop of the HTTP server.
  Streams(async::Executor own, HeadSide head);

  /// On the head's loop.
  ChangeFeed& feed() { return feed_; }
  bool full() const { return open_.size() >= kMax; }
  /// Runs a stream to its end, and closes it.
  async::Task<void> Run(net::HttpArrival& arrival, HttpRequest request);
  /// How often lists were seen to change while streams were open.
  std::uint64_t news() const { return news_; }
  class Open;

 private:
  void OnNews();
  void Take(Changes changes);

  const async::Executor own_;
  const HeadSide head_;
  ChangeFeed feed_;
  Changes now_;  // without its events
  std::deque<wire::ClusterEvent> events_;
  std::set<async::asio::steady_timer*> open_;  // timers of the streams
  async::asio::steady_timer pause_;
  Instant next_{};
  std::uint64_t news_ = 0;
  bool asking_ = false;
  async::Scope scope_;
};

/// The place of one stream among those that are open, for as long as it lives.
class Streams::Open {
 public:
  Open(Streams& all, std::shared_ptr<net::Stream> stream);
  ~Open();
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;

  /// Suspends until there may be news, the peer has closed its end, or `limit` is over (false).
  async::Task<bool> AwaitNews(Duration limit);
  /// The peer has closed its end.
  bool left() const { return peer_->left; }

  /// Has `leave` called, while it lives, when the peer closes its end.
  class Leave {
   public:
    Leave(Open& open, std::function<void()> leave) : open_(open) {
      open_.peer_->leave = std::move(leave);
    }
    ~Leave() { open_.peer_->leave = nullptr; }
    Leave(const Leave&) = delete;
    Leave& operator=(const Leave&) = delete;

   private:
    Open& open_;
  };

 private:
  struct Peer {
    bool left = false;
    async::asio::steady_timer* timer = nullptr;  // null: the stream is over
    std::function<void()> leave;
  };
  /// Notices that the peer has closed its end, so that its place is free at once.
  static async::Task<void> AwaitLeave(std::shared_ptr<net::Stream> stream,
                                      std::shared_ptr<Peer> peer);

  Streams& all_;
  const std::shared_ptr<Peer> peer_ = std::make_shared<Peer>();
  async::asio::steady_timer timer_;
};

/// The response that a stream begins with in place of a body. 503: there are kMax.
HttpResponse BeginStream(const Streams& streams, const HttpRequest& request);
/// The bytes of such a response.
std::string StreamHead();
inline constexpr char kBeatText[] = ":\n\n";

}  // namespace troupe::head
