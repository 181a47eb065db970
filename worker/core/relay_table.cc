#include "worker/core/relay_table.h"

#include <string_view>

#include "runtime/wire/frame.h"
#include "runtime/wire/repeat.h"

namespace troupe::worker {
namespace {

void Refuse(ProcessId process, std::uint64_t id, ErrorCode code, std::string text,
            Effects* effects) {
  wire::ErrorReply error;
  error.code = static_cast<std::uint16_t>(code);
  error.text = std::move(text);
  wire::Message message;
  message.reply_to = id;
  message.body = std::move(error);
  effects->push_back(ToProcess{process, std::move(message)});
}

}  // namespace

void RelayTable::Up(const Process& process, wire::Message request, const Outbox& outbox,
                    Effects* effects) {
  const std::uint64_t id = request.id;
  StatusOr<std::string> frame = wire::EncodeFrame(request);
  if (!frame.ok()) {
    Refuse(process.id, id, ErrorCodeOf(frame.status()), MessageOf(frame.status()), effects);
    return;
  }
  if (frame->size() > wire::kAttachmentBytesMax) {
    Refuse(process.id, id, ErrorCode::kTooLarge,
           std::string(wire::NameOf(request.body)) + " is larger than a relayed message may be",
           effects);
    return;
  }
  if (bytes_ + frame->size() > bytes_max_) {
    Refuse(process.id, id, ErrorCode::kConnection,
           "the head cannot be reached, and too many requests wait for it on this node", effects);
    return;
  }
  wire::Relay relay;
  relay.process = process.id;
  relay.launch = process.launch;
  relay.epoch = process.epoch;
  relay.rank = process.rank;
  relay.actor = process.actor;
  Pending pending;
  pending.process = process.id;
  pending.id = id;
  pending.repeatable = wire::Repeatable(request.body);
  pending.relay.body = std::move(relay);
  pending.relay.attachment = *std::move(frame);
  outbox.SendNow(pending.relay, effects);
  bytes_ += pending.relay.attachment.size();
  by_id_[{process.id, id}] = next_;
  pending_.emplace(next_++, std::move(pending));
}

bool RelayTable::Down(ProcessId process, const std::string& frame, Effects* effects) {
  const StatusOr<wire::Message> message = wire::DecodeFrame(frame);
  if (!message.ok()) return false;
  const auto found = by_id_.find({process, message->reply_to});
  if (found != by_id_.end()) Drop(pending_.find(found->second));
  effects->push_back(FrameToProcess{process, frame});
  return true;
}

void RelayTable::OnRegistered(const Outbox& outbox, const wire::Welcome& head,
                              const ProcessTable& processes, Effects* effects) {
  for (const auto& [order, pending] : pending_) outbox.SendNow(pending.relay, effects);
  if (std::exchange(head_incarnation_, head.head_incarnation) == head.head_incarnation) return;
  for (const auto& [id, process] : processes.all()) {
    if (process.pid != 0 && !process.exited && !process.is_program)
      effects->push_back(ToProcess{id, wire::Message{0, 0, head, {}}});
  }
}

void RelayTable::OnDisconnected(Effects* effects) {
  for (auto entry = pending_.begin(); entry != pending_.end();) {
    const auto here = entry++;
    if (here->second.repeatable) continue;
    Refuse(here->second.process, here->second.id, ErrorCode::kUnknownOutcome,
           "the head became unreachable before it answered: whether this took effect is not known",
           effects);
    Drop(here);
  }
}

void RelayTable::OnGone(ProcessId process) {
  auto entry = by_id_.lower_bound({process, 0});
  while (entry != by_id_.end() && entry->first.first == process) {
    const auto here = entry++;
    Drop(pending_.find(here->second));
  }
}

void RelayTable::Drop(std::map<Order, Pending>::iterator entry) {
  bytes_ -= entry->second.relay.attachment.size();
  by_id_.erase({entry->second.process, entry->second.id});
  pending_.erase(entry);
}

}  // namespace troupe::worker
