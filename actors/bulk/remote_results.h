// Results whose caller is on another host: the actor offers them over the call session's own link,
// and the caller pulls them from there, into its own memory.
//
// Functions over an object store and a session (BulkSession); any thread may call them, without a
// lock of either. They return at once; what has come is told on the mover's thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "actors/bulk/bulk_session.h"
#include "actors/objects/object_handles.h"
#include "actors/objects/object_store.h"
#include "actors/objects/result_hold.h"
#include "actors/slots/answer.h"
#include "runtime/store/pool.h"

namespace troupe::actors {

/// A result that is large, with `writing`, or names the objects `contained`, with `bytes`, as the
/// body of its reply. The other end may read it, and hold what lies inside it, until it says that
/// it has it, or until what is returned is destroyed. `contained` is taken over.
std::shared_ptr<ResultHold> OfferResult(ObjectStore& store, const store::Writing* writing,
                                        std::string_view bytes, Handles contained,
                                        const std::shared_ptr<BulkSession>& bulk_session,
                                        std::string* body);

/// A reply with such a body has come for `slot`: it is answered, as `then` says, when the value is
/// here or is known not to come. `wanted`: somebody may read it; else its maker is told that nobody
/// does, and `then` is posted. Never kDone; kBad: the body is none, or there is no session.
ObjectStore::Took TakeRemoteResult(ObjectStore& store, Answer* slot, std::string_view body,
                                   const std::shared_ptr<BulkSession>& bulk_session, bool wanted,
                                   ResultThen then = {});

}  // namespace troupe::actors
