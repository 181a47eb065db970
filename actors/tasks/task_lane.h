// A process that runs tasks of a pool: the calls that go to it, and which functions and shapes it
// has been told of.
//
// A function's definition precedes its first call, a shape's names travel with the first call that
// has it. Takes no lock, its pool's guards it, which comes before the channel's; never blocks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "actors/caller/argument_codec.h"
#include "actors/caller/call_holds.h"
#include "actors/caller/channel.h"
#include "actors/core/call/byte_buffer.h"
#include "actors/core/policy/task_dispatch.h"
#include "actors/slots/answer.h"
#include "actors/tasks/task_call.h"

namespace troupe::actors {

class TaskLane {
 public:
  static constexpr std::string_view kDefine = "__define__";

  explicit TaskLane(std::shared_ptr<Channel> channel) : channel_(std::move(channel)) {}

  enum class Sent {
    kYes,
    kLast,  // transmitted, and this process is to run nothing more
    kLater,  // the process's next answer makes room
    kNever,  // the process is gone, or counts too many calls
  };
  /// Sends a call that `answer` is to answer, with the channel's reference added. Where it went to
  /// another host `*over` is what it may read there until then.
  Sent Send(const TaskCall& call, Answer* answer, const ArgumentCodec& values,
            std::unique_ptr<CallHolds>* over);
  /// Calls a method of the process itself, without arguments. Its answer to come; empty: it cannot
  /// be called any more.
  AnswerRef Ask(std::string_view method);
  Channel& channel() const { return *channel_; }
  /// The channel, for who ends this lane and lets go of it without the lock.
  std::shared_ptr<Channel> TakeChannel() { return std::move(channel_); }

 private:
  void AppendArguments(const TaskCall& call, const ArgumentCodec& values, ByteBuffer& frame,
                       std::uint16_t* flags, std::unique_ptr<CallHolds>* over) const;
  Sent SendCall(const TaskCall& call, Answer* answer, const ArgumentCodec& values,
                std::unique_ptr<CallHolds>* over);
  Sent Define(const TaskFunction& function);
  Sent Issue(ByteBuffer& frame, std::uint16_t flags, Answer* answer,
             std::shared_ptr<ItemStream> items);

  std::shared_ptr<Channel> channel_;
  std::unordered_map<std::uint64_t, std::uint16_t> shapes_;     // by id
  std::unordered_map<std::uint64_t, std::uint64_t> functions_;  // by id: how often called
};

/// The lanes of one pool, by their numbers and by their channels'.
class TaskLanes {
 public:
  TaskLane& Add(LaneId id, std::shared_ptr<Channel> channel) {
    by_channel_[channel->id()] = id;
    return lanes_.emplace(id, TaskLane(std::move(channel))).first->second;
  }
  /// Removes a lane and returns its channel, to be released without the lock; nullptr: there is no
  /// such lane.
  std::shared_ptr<Channel> Remove(LaneId id) {
    const auto found = lanes_.find(id);
    if (found == lanes_.end()) return nullptr;
    by_channel_.erase(found->second.channel().id());
    std::shared_ptr<Channel> channel = found->second.TakeChannel();
    lanes_.erase(found);
    return channel;
  }
  /// nullptr: there is none.
  TaskLane* Find(LaneId id) {
    const auto found = lanes_.find(id);
    return found != lanes_.end() ? &found->second : nullptr;
  }
  TaskLane& At(LaneId id) { return lanes_.at(id); }
  /// 0: no lane's.
  LaneId OfChannel(std::uint64_t channel) const {
    const auto found = by_channel_.find(channel);
    return found != by_channel_.end() ? found->second : 0;
  }
  const std::map<LaneId, TaskLane>& all() const { return lanes_; }

 private:
  std::map<LaneId, TaskLane> lanes_;
  std::unordered_map<std::uint64_t, LaneId> by_channel_;
};

}  // namespace troupe::actors
