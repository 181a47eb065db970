#include "head/core/placed/names.h"

#include <utility>

#include "head/core/nodes/roles.h"

namespace troupe::head {

void OnKvPut(Turn& turn, const Request& request, const wire::KvPut& message,
             const std::string& value) {
  if (message.key.empty() || message.key.size() > kKeyBytesMax) {
    turn.Refuse(request, ErrorCode::kInvalid, "a key has 1 to 1024 bytes");
    return;
  }
  if (value.size() > kValueBytesMax) {
    turn.Refuse(request, ErrorCode::kTooLarge,
                "the value of '" + message.key + "' has " + std::to_string(value.size()) +
                    " bytes; the limit is 1 MiB");
    return;
  }
  if (turn.state.recent_writes.Has(message.request)) {  // a repeat after a lost answer
    turn.Reply(request, wire::Ok());
    return;
  }
  const auto known = turn.state.values.find({message.scope, message.key});
  if (known != turn.state.values.end() && !message.overwrite) {
    turn.Refuse(request, ErrorCode::kAlreadyExists, "'" + message.key + "' already has a value");
    return;
  }
  const std::size_t before =
      known == turn.state.values.end() ? 0 : BytesOf(known->first, known->second.bytes);
  const std::size_t after =
      turn.state.values_bytes - before + message.scope.size() + message.key.size() + value.size();
  if ((known == turn.state.values.end() && turn.state.values.size() >= kValuesMax) ||
      after > kAllValuesBytesMax) {
    turn.Refuse(request, ErrorCode::kTooLarge,
                "the head keeps " + std::to_string(turn.state.values.size()) + " values of " +
                    std::to_string(turn.state.values_bytes >> 20) +
                    " MiB together; the limits are " + std::to_string(kValuesMax) +
                    " (kValuesMax) and " + std::to_string(kAllValuesBytesMax >> 20) +
                    " MiB (kAllValuesBytesMax)\n  delete some, or keep large data in objects "
                    "(troupe.put) or files");
    return;
  }
  wire::ValueWritten written;
  written.scope = message.scope;
  written.key = message.key;
  written.request = message.request;
  written.line = known == turn.state.values.end() ? request.line : known->second.line;
  written.version = known == turn.state.values.end() ? 1 : known->second.version + 1;
  turn.Append(std::move(written), value);
  turn.Reply(request, wire::Ok());
}

void OnKvGet(Turn& turn, const Request& request, const wire::KvGet& message) {
  wire::KvValue reply;
  const auto known = turn.state.values.find({message.scope, message.key});
  if (known == turn.state.values.end()) {
    turn.Reply(request, reply);
    return;
  }
  reply.found = true;
  reply.version = known->second.version;
  turn.Reply(request, reply, known->second.bytes);
}

void OnKvDelete(Turn& turn, const Request& request, const wire::KvDelete& message) {
  if (turn.state.recent_writes.Has(message.request)) {
    turn.Reply(request, wire::Ok());
    return;
  }
  if (turn.state.values.count({message.scope, message.key}) == 0) {
    turn.Refuse(request, ErrorCode::kNotFound, "'" + message.key + "' has no value");
    return;
  }
  wire::ValueErased erased;
  erased.scope = message.scope;
  erased.key = message.key;
  erased.request = message.request;
  turn.Append(std::move(erased));
  turn.Reply(request, wire::Ok());
}

void OnKvList(Turn& turn, const Request& request, const wire::KvList& message) {
  wire::KvKeys keys;
  for (auto it = turn.state.values.lower_bound({message.scope, message.prefix});
       it != turn.state.values.end() && it->first.first == message.scope &&
       it->first.second.compare(0, message.prefix.size(), message.prefix) == 0;
       ++it) {
    if (OwnsValue(request, it->second)) keys.keys.push_back(it->first.second);
  }
  turn.Reply(request, std::move(keys));
}

}  // namespace troupe::head
