// A caller without Python, for tests: issues calls and waits for their answers.
#pragma once

#include <chrono>
#include <string_view>

#include "actors/caller/channel.h"
#include "actors/caller/reactor.h"
#include "actors/core/call/call_frame.h"
#include "actors/net/now.h"
#include "tests/actors/echo_executor.h"

namespace troupe::actors {

inline WaitResult Await(Answer* slot, Channel* channel, Duration most = std::chrono::seconds(60)) {
  PlainHost host;
  WaitRequest request;
  request.slots = &slot;
  request.slot_count = 1;
  request.channels = &channel;
  request.channel_count = channel != nullptr ? 1 : 0;
  request.deadline = Now() + most;
  return CallReactor::Current().Wait(request, host);
}

inline Answer* Call(Channel& channel, std::string_view method, std::string_view values) {
  while (true) {
    ByteBuffer frame;
    frame.Extend(kFrameHeadBytes);
    frame.AppendValue(CallHead{});
    frame.AppendValue(static_cast<std::uint16_t>(method.size()));
    frame.Append(method.data(), method.size());
    frame.Append(values.data(), values.size());
    Channel::Call call = channel.Issue(frame, kFlagNamed);
    if (call.issued == Channel::Issued::kOkDrain) CallReactor::Current().Drain(channel);
    if (call.issued != Channel::Issued::kFull) return call.answer.Take();
    if (const AnswerRef room = channel.WhenRoom()) {
      EXPECT_EQ(Await(room.get(), &channel), WaitResult::kDone);
    }
  }
}

}  // namespace troupe::actors
