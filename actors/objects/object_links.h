// The links of this process's object store to those of the other processes of its host: who is
// dialled and when again, which link of a pair counts, and what goes over it.
//
// One link per process. Either end may dial; where both do, the later link counts, at both ends. A
// link is up once both have greeted; it carries the frames of the two reference tables
// (runtime/store), which are sent again on the next link after a loss, and what the stores say to
// each other of segments and lives (core/call/object_frame.h). What a link was asked to send leaves
// with Flush; a link that ended is taken out by CloseEnded alone, so that whoever is told of a
// frame may still name it.
//
// The reference table is told here of connections that begin and end and of processes that are
// gone; what else follows, Events says. Whose view: one process. Takes no lock: the object store
// holds its mutex whenever it calls, and so when it is called back. Nothing blocks.
//
// A peer's frame that makes no sense ends its link, and nothing else.
#pragma once

#include <sys/epoll.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "actors/core/call/object_frame.h"
#include "actors/net/fork_guard.h"
#include "actors/objects/object_link.h"
#include "actors/objects/object_poll.h"
#include "actors/objects/segment_map.h"
#include "runtime/base/ids.h"
#include "runtime/base/time.h"
#include "runtime/store/core/control_frame.h"
#include "runtime/store/core/references.h"

namespace troupe::actors {

class ObjectLinks {
 public:
  /// The consequences of links, for their owner.
  class Events {
   public:
    virtual ~Events() = default;
    /// Handles a frame of the other end of `link` about segments and lives. False: the link is
    /// over.
    virtual bool OnFrame(ObjectLink& link, const ObjectFrame& frame) = 0;
    /// A frame for the reference table, which this hands on to it. False: the link is over.
    virtual bool OnControl(const ProcessId& peer, std::uint64_t connection,
                           const store::ReceivedFrame& received) = 0;
    /// A link to `peer` was up, and is no more.
    virtual void OnDown(const ProcessId& peer) = 0;
    /// Requests to `peer` that were not answered never will be.
    virtual void OnNothingFrom(const ProcessId& peer, const std::string& why) = 0;
    /// Returns the segments to ask `peer` for as soon as a link to it is up.
    virtual std::vector<SegmentKey> WantedFrom(const ProcessId& peer) = 0;
  };

  /// `poll`, `table` and `events` outlive this. `listener`: of ObjectLink::Listen.
  ObjectLinks(const ProcessId& self, GuardedFd listener, ObjectPoll& poll, store::References& table,
              Events& events);

  /// Dials `peer`, unless there is a link to it.
  void Ensure(const ProcessId& peer);
  /// The table has struck the pair: its link ends, and no other is dialled.
  void Refuse(const ProcessId& peer);
  /// Nothing of that process matters any more.
  void Unwatch(const ProcessId& peer);

  /// Sends a frame; where no link is up, the table sends it again on the next.
  void SendFrame(const store::SendFrame& send);
  void SendAck(const ProcessId& peer);
  /// Does nothing where no link is up.
  void Say(const ProcessId& peer, const ObjectFrame& frame);
  /// Asks for a descriptor; where no link is up, WantedFrom is to say so.
  void Want(const SegmentKey& key, const ProcessId& from);
  /// Answers kWant, with a descriptor or, if it is not valid, without.
  void Give(ObjectLink& link, const SegmentKey& key, GuardedFd descriptor, std::uint64_t bytes);
  /// Tells all who were given that segment to let go of it.
  void Retire(const SegmentKey& key);

  void Flush();
  /// False: no link had ended.
  bool CloseEnded();

  /// Handles an event that ObjectPoll::Wait returned.
  void OnEvent(const epoll_event& event);
  /// When DialDue has something to do.
  std::optional<Instant> NextDial() const;
  void DialDue(Instant now);
  /// True, once, after NextDial may have moved.
  bool TakeMoved();

  /// Processes that there are links to.
  std::size_t size() const { return link_of_.size(); }

 private:
  ObjectLink* LinkTo(const ProcessId& peer);
  ObjectLink* UpTo(const ProcessId& peer);
  void Append(ObjectLink& link, const std::string& bytes);
  std::string HelloTo(const ProcessId& peer, std::uint64_t stamp) const;
  void Accept();
  void Add(GuardedFd fd, bool dialled, const ProcessId& peer, std::uint64_t stamp);
  void DialAgain(const ProcessId& peer);
  void FlushLink(ObjectLink& link);
  void Close(std::uint64_t id);
  void Read(ObjectLink& link);
  bool TakeFrames(ObjectLink& link);
  bool TakeControl(ObjectLink& link, std::string_view bytes, std::size_t* used, bool* good);
  bool TakeFrame(ObjectLink& link, const ObjectFrame& frame);
  bool Greet(ObjectLink& link, const ObjectFrame& hello);
  bool Precede(ObjectLink& link, const ObjectFrame& hello);

  const ProcessId self_;
  const GuardedFd listener_;
  ObjectPoll& poll_;
  store::References& table_;
  Events& events_;
  std::map<std::uint64_t, std::unique_ptr<ObjectLink>> links_;
  std::map<ProcessId, std::uint64_t> link_of_;  // the one that counts
  std::map<ProcessId, Instant> dial_again_;
  std::set<std::uint64_t> unflushed_;
  std::vector<std::uint64_t> ended_;
  std::uint64_t next_link_ = ObjectPoll::kFirstLinkId;
  std::uint64_t connections_ = 0;                      // links that were ever up
  std::map<ProcessId, std::uint64_t> connections_of_;  // the latest, by process
  bool moved_ = false;
};

}  // namespace troupe::actors
