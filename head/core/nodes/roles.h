// Authorization. Every request is checked here against runtime/wire/role_table.h before its handler
// runs.
//
// Own. A client's are the launches, actors, groups and values of all clients: they are one trust
// domain. A rank or an actor belongs to the client at the beginning of its line of makers, and what
// it may act on is what belongs to that client, detached or not, and its own launch. A worker's is
// its node: it carries the requests of the ranks and actors that the head placed there, and what it
// says of itself is compared with that by the handlers, which answer what is stale. An observer
// looks.
//
// View: the cluster; pure.
#pragma once

#include <optional>
#include <string>

#include "head/core/machine/turn.h"
#include "runtime/wire/role_table.h"

namespace troupe::head {

using wire::May;
using wire::Speaker;

Speaker SpeakerOf(wire::Role role, bool relayed);

/// Why something is refused: a code and a text for who asked.
struct Refusal {
  ErrorCode code = ErrorCode::kNone;
  std::string text;
};

/// As whom `input` asks. For a relayed request what the worker says of launch, rank and actor is
/// what the head placed on its node, or this is refused.
std::optional<Refusal> Identify(Turn& turn, const MessageFrom& input, const Session& session,
                                Request* request);

/// Nothing where `speaker` may say this; else why not.
std::optional<Refusal> ObjectionTo(Turn& turn, Speaker speaker, const Request& request,
                                   const wire::Body& body);

/// Returns true if the requester may set quotas, and make tokens for others (QT-5, quotas.h).
bool IsAdministrator(const Turn& turn, const Request& request);
/// Returns the objection to a user's name; empty: there is none.
std::string ObjectionToUser(const std::string& name);

/// Returns the owner of an object (see above).
OwnerId LineOf(const Launch& launch);
OwnerId LineOf(const Actor& actor);
OwnerId LineOf(Turn& turn, const Group& group);
/// Returns true if the sender may use a key of this line.
bool OwnsValue(const Request& request, const Value& value);

/// Returns true if this process, which the worker reports as ended, was one of that node: objects
/// it owned may end.
bool WasOn(const Turn& turn, const NodeId& node, const ProcessId& process);
/// Returns true if that id is somebody's already: objects made under it would be taken for theirs.
bool IsSomebody(const State& state, const Id128& id);

}  // namespace troupe::head
