// The requests of a control client that are under way, and what a connection that is lost and
// comes back does to them. Pure: the times at which things happen are passed in; it takes no
// lock.
//
//   RT-1  Each request has an id of its own, from 2 on: 1 was the Hello's. The first answer that
//         names it counts, and one that names no request (its caller has given up) is dropped.
//   RT-2  Requests are to be sent in the order in which they were added, once over each
//         connection: what has no answer when the client is back is sent again, in that order,
//         before what is added later.
//   RT-3  What was sent and may not be repeated (wire/repeat.h) ends with kUnknownOutcome when its
//         connection is lost. What was not sent yet goes over the next one.
//   RT-4  At most kAskedMax requests that nobody waits for are under way. What is refused of them
//         is told, with the request; other answers to them are dropped.
//   RT-5  Time without a connection does not count against a request's limit; while there is none,
//         it has no end.
//   RT-6  Once the client has ended, all that is under way is answered with the reason.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/client/polled_wait.h"
#include "runtime/wire/messages.h"

namespace troupe::client {

inline constexpr std::size_t kAskedMax = 1000;

class RequestTable {
 public:
  using Id = std::uint64_t;
  using Time = WaitClock::time_point;
  struct Outgoing {
    Id id = 0;
    std::shared_ptr<const wire::Message> message;
  };
  /// A message without a waiter that was refused, or whose outcome is not known.
  struct Refusal {
    Status why;
    std::shared_ptr<const wire::Message> asked;
  };

  // -- who asks --
  /// Somebody waits for the answer, `limit` at most. Not once the client has ended.
  Id Add(wire::Message message, std::optional<Duration> limit, Time now);
  /// Nobody does. False: kAskedMax are under way. Not once the client has ended.
  bool AddUnwaited(wire::Message message);
  bool Answered(Id id) const;
  /// When its wait ends, as it looks now; nullopt: it has no end yet. Of a request that somebody
  /// waits for.
  std::optional<Time> Deadline(Id id, Time now) const;
  /// The wait is over: its answer, if it came.
  std::optional<StatusOr<wire::Message>> Forget(Id id);
  /// How many wait to be sent: who adds the first one is to see to that.
  std::size_t unsent() const { return unsent_.size(); }

  // -- the connection --
  /// There is one, the first or another.
  void Connected(Time now);
  /// Notes the loss of the peer, perhaps for a while. Requests whose outcome is not known are
  /// answered, and `answered` gets their ids; returns those without a waiter.
  std::vector<Refusal> Lost(const std::string& peer, Time now, std::vector<Id>& answered);
  /// Returns the frames to send over the connection now; none while there is no connection.
  std::vector<Outgoing> TakeUnsent();
  /// Nullopt: it is, if somebody waits for it, answered.
  std::optional<Refusal> Answer(Id id, StatusOr<wire::Message> answer);
  /// For good.
  void End(const Status& why);
  /// Ok, or why it has ended.
  const Status& ended() const { return ended_; }

 private:
  struct Entry {
    std::shared_ptr<const wire::Message> message;
    bool waited_for = false;
    bool sent = false;
    std::optional<Duration> limit;
    Time begun{};
    Time::duration away_before{};
    std::optional<StatusOr<wire::Message>> answer;
  };
  Id AddEntry(wire::Message message, Entry entry);
  /// Time without a connection, in all, up to `now`.
  Time::duration Away(Time now) const;

  std::map<Id, Entry> entries_;
  std::vector<Outgoing> unsent_;
  Id next_id_ = 2;
  std::size_t unwaited_ = 0;
  bool connected_ = false;
  std::optional<Time> away_since_;  // a connection was lost, and there is no other one
  Time::duration away_{};           // in all, before that
  Status ended_;
};

}  // namespace troupe::client
