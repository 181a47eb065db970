#include "head/http/streams.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <optional>
#include <utility>

#include "head/http/access.h"
#include "head/http/numbers.h"
#include "head/http/pages.h"
#include "runtime/async/deadline.h"
#include "runtime/base/log.h"

namespace troupe::head {
namespace {

using async::Task;

std::string LostText(std::uint64_t events) {
  return "event: lost\ndata: {\"events\":" + std::to_string(events) + "}\n\n";
}

std::string EndText(const Status& why) {
  return "event: end\ndata: {\"why\":\"" + ValidUtf8(JsonEscape(MessageOf(why))) + "\"}\n\n";
}

}  // namespace

std::string StreamHead() {
  return "HTTP/1.1 200 OK\r\nServer: troupe\r\nContent-Type: text/event-stream\r\n"
         "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
         "retry: 1000\n\n";
}

HttpResponse BeginStream(const Streams& streams, const HttpRequest& request) {
  if (streams.full()) {
    return ErrorResponse(
        503, "there are " + std::to_string(Streams::kMax) + " streams, which is the limit");
  }
  HttpResponse response;
  response.type = "text/event-stream";
  response.stream = request.method != "HEAD";
  return response;
}

std::string NewsFor(StreamPlace* place, const Changes& now,
                    const std::deque<wire::ClusterEvent>& events) {
  std::string text, lists;
  for (std::size_t i = 0; i < kChangedLists; ++i) {
    if (std::exchange(place->versions[i], now.versions[i]) == now.versions[i]) continue;
    const auto list = static_cast<ChangedList>(i);
    if (list == ChangedList::kTokens) continue;  // a reason to look, and nobody's business
    lists += (lists.empty() ? "\"" : ",\"") + std::string(NameOf(list)) + "\"";
  }
  if (!lists.empty()) text = "event: changed\ndata: {\"lists\":[" + lists + "]}\n\n";
  if (!events.empty() && events.front().number > place->number + 1) {
    text += LostText(events.front().number - place->number - 1);
  }
  for (const wire::ClusterEvent& each : events) {
    if (each.number <= place->number) continue;
    text += "event: event\nid: " + std::to_string(now.incarnation) + "-" +
            std::to_string(each.number) + "\ndata: " + EventJson(each, now.incarnation) + "\n\n";
    place->number = each.number;
  }
  return text;
}

std::string BeginAt(const std::string& last_event_id, const Changes& now,
                    const std::deque<wire::ClusterEvent>& events, StreamPlace* place) {
  place->versions = now.versions;
  place->number = events.empty() ? 0 : events.back().number;
  if (last_event_id.empty()) return "";
  const auto id = ReadPair(last_event_id);  // incarnation of the head, number of an event
  if (id && id->first == now.incarnation) {
    place->number = std::min(place->number, id->second);
    return "";
  }
  // Another head told those: how many there were since is not known.
  place->number = events.empty() ? 0 : events.front().number - 1;
  return "event: lost\ndata: {\"events\":null}\n\n";
}

Streams::Open::Open(Streams& all, std::shared_ptr<net::Stream> stream)
    : all_(all), timer_(all.own_) {
  all_.open_.insert(&timer_);
  all_.feed_.SetWatched(true);
  peer_->timer = &timer_;
  all_.scope_.Spawn("end of a stream", AwaitLeave(std::move(stream), peer_));
}

Streams::Open::~Open() {
  peer_->timer = nullptr;
  all_.open_.erase(&timer_);
  all_.feed_.SetWatched(!all_.open_.empty());
}

Task<void> Streams::Open::AwaitLeave(std::shared_ptr<net::Stream> stream,
                                     std::shared_ptr<Peer> peer) {
  std::array<char, 256> block;
  for (std::size_t idle_bytes = 0; idle_bytes < kHttpHeadBytesMax;) {
    const StatusOr<std::size_t> n = co_await stream->Read(block.data(), block.size());
    if (!n.ok() || *n == 0) break;
    idle_bytes += *n;  // there is nothing to say on a stream
  }
  peer->left = true;
  if (peer->leave) peer->leave();
  if (peer->timer != nullptr) peer->timer->cancel();
}

Task<bool> Streams::Open::AwaitNews(Duration limit) {
  timer_.expires_after(limit);
  const auto [error] = co_await timer_.async_wait(async::kTuple);
  co_return static_cast<bool>(error);
}

Streams::Streams(async::Executor own, HeadSide head)
    : own_(std::move(own)),
      head_(std::move(head)),
      feed_(head_.core,
            [this] { async::asio::post(own_, [self = shared_from_this()] { self->OnNews(); }); }),
      pause_(own_),
      scope_(own_, "streams") {}

void Streams::OnNews() {
  if (std::exchange(asking_, true)) return;
  pause_.expires_after(std::max<Duration>(next_ - head_.clock.Now(), Duration(0)));
  pause_.async_wait([self = shared_from_this()](const auto& error) {
    if (error) return;
    const std::uint64_t after = self->events_.empty() ? 0 : self->events_.back().number;
    async::asio::post(self->head_.executor, [self, after] {
      async::asio::post(self->own_, [self, changes = self->feed_.Collect(after)]() mutable {
        self->asking_ = false;
        self->next_ = self->head_.clock.Now() + kPause;
        self->Take(std::move(changes));
      });
    });
  });
}

void Streams::Take(Changes changes) {
  for (wire::ClusterEvent& each : changes.events) {
    // Two may have asked at once.
    if (events_.empty() || each.number > events_.back().number) events_.push_back(std::move(each));
  }
  while (events_.size() > kEventsMax) events_.pop_front();
  changes.events.clear();
  if (changes.versions != now_.versions) ++news_;
  now_ = std::move(changes);
  for (async::asio::steady_timer* timer : open_) timer->cancel();
}

Task<void> Streams::Run(net::HttpArrival& arrival, HttpRequest request) {
  const std::shared_ptr<net::Stream> stream = std::move(arrival.stream);
  Open open(*this, stream);
  const std::uint64_t after = events_.empty() ? 0 : events_.back().number;
  std::function<Changes()> collect = [this, after] { return feed_.Collect(after); };
  auto asking = AskHead<Changes>(head_.executor, std::move(collect));
  StatusOr<Changes> first = co_await std::move(asking);
  if (first.ok()) Take(*std::move(first));
  StreamPlace place;
  std::string text = StreamHead() + BeginAt(request.last_event_id, now_, events_, &place);
  while (!open.left()) {
    auto authenticating =
        AuthenticateHttp(request, arrival.peer, head_.rules, head_.executor, head_.clock);
    const StatusOr<HttpCaller> caller = co_await std::move(authenticating);
    text += caller.ok() ? NewsFor(&place, now_, events_) : EndText(caller.status());
    if (!text.empty()) {
      auto writing = stream->Write(text);
      const Status sent = co_await async::WithDeadline(std::move(writing), Duration(kWriteLimit),
                                                       "a stream's news to be taken");
      if (!sent.ok() || !caller.ok()) break;
      text.clear();
      if (now_.versions != place.versions) continue;  // there were some meanwhile
    }
    auto waiting = open.AwaitNews(kBeat);
    if (!co_await std::move(waiting)) text = kBeatText;
  }
  stream->Close();
}

}  // namespace troupe::head
