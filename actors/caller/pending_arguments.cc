#include "actors/caller/pending_arguments.h"

#include <algorithm>
#include <utility>

#include "actors/bulk/bulk_session.h"
#include "actors/caller/reactor.h"
#include "actors/core/call/call_frame.h"
#include "actors/core/remote/value_refs.h"
#include "actors/objects/object_store.h"
#include "actors/slots/waiter.h"

namespace troupe::actors {
namespace {

/// From which size on a value that lies in memory goes by name. Where it is not known yet on which
/// host the actor is to be, those that the frame has room for are copied: so much works wherever it
/// will be.
std::size_t NamedFrom(PendingTarget::Place place, std::size_t used) {
  if (place == PendingTarget::Place::kHere) return 0;
  const std::size_t room = RoomBeside(used);
  return place == PendingTarget::Place::kRemote ? std::min(room, BulkSession::kFromBytes) : room;
}

store::ObjectId RemoteNameOf(const store::ObjectId& id) {
  ObjectStore* const store = ObjectStore::Existing();
  return store != nullptr ? store->RemoteNameOf(id) : id;
}

class ArgumentDone : public Completion {
 public:
  ArgumentDone(std::shared_ptr<ArgumentKeeper> keeper, std::uint64_t number, AnswerRef answer)
      : keeper_(std::move(keeper)), number_(number), answer_(std::move(answer)) {}
  void Run() override { keeper_->ArgumentHere(number_, *answer_); }

 private:
  const std::shared_ptr<ArgumentKeeper> keeper_;
  const std::uint64_t number_;
  const AnswerRef answer_;
};

}  // namespace

PendingArguments::PendingArguments(std::vector<ArgumentToCome> to_come)
    : to_come_(std::move(to_come)), missing_(to_come_.size()) {}

std::vector<AnswerRef> PendingArguments::Answers() const {
  std::vector<AnswerRef> answers;
  answers.reserve(to_come_.size());
  for (const ArgumentToCome& each : to_come_)
    answers.push_back(AnswerRef::Another(each.answer.get()));
  return answers;
}

PendingArguments::Came PendingArguments::Note(const Answer& answer) {
  if (answer.failed()) return Came::kFailed;
  return --missing_ == 0 ? Came::kAll : Came::kOthersMissing;
}

PendingArguments::Filled PendingArguments::FillIn(PendingTarget::Place place, std::size_t beside,
                                                  const ArgumentCodec& values, std::string* encoded,
                                                  Handles* held) {
  std::string filled;
  std::size_t from = 0;
  bool good = true;
  for (const ArgumentToCome& each : to_come_) {
    filled.append(*encoded, from, each.at - from);
    from = each.at;
    const std::size_t named_from = NamedFrom(place, filled.size() + encoded->size() - from);
    const std::size_t at = filled.size();
    good = good && values.AppendAnswer(*each.answer, named_from, &filled, held);
    if (place == PendingTarget::Place::kRemote) {
      RenameRefs(filled.data() + at, filled.size() - at, RemoteNameOf);
    }
  }
  filled.append(*encoded, from);
  *encoded = std::move(filled);
  to_come_.clear();
  if (!good) return Filled::kNoValue;
  return PaddedTo8(beside + encoded->size()) <= CallLimits().frame_bytes_max ? Filled::kGood
                                                                             : Filled::kTooLarge;
}

std::uint16_t FlagsOfFailedArgument(const Answer& argument) {
  return kFlagReply | kFlagOfArgument | (argument.flags() & kErrorFlags);
}

void AwaitArguments(const std::shared_ptr<ArgumentKeeper>& keeper, std::uint64_t number,
                    std::vector<AnswerRef> answers) {
  CallReactor& reactor = CallReactor::Current();
  for (AnswerRef& each : answers) {
    Answer* const answer = each.get();
    static_cast<void>(
        reactor.OnDone(answer, std::make_unique<ArgumentDone>(keeper, number, std::move(each))));
  }
}

}  // namespace troupe::actors
