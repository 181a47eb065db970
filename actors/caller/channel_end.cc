// How a channel ends: the connection's end, the calls that were under way, what is said of them.
#include <absl/strings/str_format.h>

#include <string>
#include <utility>

#include "actors/bulk/bulk_session.h"
#include "actors/caller/channel.h"
#include "actors/caller/pending_calls.h"
#include "actors/caller/reactor.h"

namespace troupe::actors {

void Channel::EndLocked(std::string_view reason) {
  // Reads the sent offset before the window is cleared: afterwards it is lost.
  if (!fates_.End(reason, session_.window().sent_offset())) return;
  session_.window().Clear();
  if (bulk_session_ != nullptr) bulk_session_->End(fates_.end_reason());
  ExpectLocked(false);
  if (stream_.attached()) reactor_.Unwatch(*this);
  route_.Close();
  stream_.Shutdown();
  if (on_disconnect_ != nullptr) reactor_.Post(std::move(on_disconnect_));
  EndLineLocked();
  reactor_.SetGrace(id_, options_.grace);
  OpenRoomLocked();
}

void Channel::FailLocked(std::string_view text) {
  if (!fates_.Finish(text)) return;
  while (AnswerRef slot = ring_.TakeFront()) {
    const CallFates::Fate fate = fates_.OfCall(slot->end_offset);
    slot->Fill(fate.flags, fate.body);
    const std::uint64_t sequence = SequenceOf(slot.get());
    FinishLocked(std::move(slot), sequence,
                 fate.sent ? ObservedAnswer::Lost::kMaybeExecuted : ObservedAnswer::Lost::kNotSent);
  }
  OpenRoomLocked();
}

void Channel::Fail(ErrorCode code, const std::string& text) {
  ByteBuffer body;
  AppendRuntimeError(body, code, options_.description + ": " + text);
  FailWith(kFlagReply | kFlagRuntimeError, body.view());
}

void Channel::FailWith(std::uint16_t flags, std::string_view body) {
  reactor_.Drain(*this);  // answers that arrived before the verdict still count
  AnswerList finished;
  {
    MutexLock lock(mutex_);
    EndLocked("the actor is gone");
    if (bulk_session_ != nullptr) bulk_session_->Dead("its actor has died");
    fates_.Judge(flags, body);
    FailLocked({});
    finished.swap(finished_);
  }
  NotifyFinished(finished, false);
  TellObserver(false);
}

void Channel::Lose(const std::string& why) {
  reactor_.Drain(*this);
  AnswerList finished;
  {
    MutexLock lock(mutex_);
    EndLocked(why);
    if (bulk_session_ != nullptr) bulk_session_->Dead(why);
    FailLocked(why);
    finished.swap(finished_);
  }
  NotifyFinished(finished, false);
  TellObserver(false);
}

void Channel::OnDisconnect(std::unique_ptr<Completion> completion) {
  MutexLock lock(mutex_);
  if (fates_.open()) {
    on_disconnect_.swap(completion);  // the one before is destroyed after the lock is released
  } else if (completion != nullptr) {
    reactor_.Post(std::move(completion));
  }
}

void Channel::Close() {
  Flush();
  std::unique_ptr<Completion> unused;
  AnswerList finished;
  {
    MutexLock lock(mutex_);
    unused.swap(on_disconnect_);
    if (fates_.open() && session_.window().sent_offset() != 0 && !session_.greeting()) {
      session_.AppendEnd();
      FlushLocked();
    }
    EndLocked("closed by this process");
    FailLocked("its channel was closed here");
    finished.swap(finished_);
  }
  NotifyFinished(finished, false);
  TellObserver(false);
  reactor_.Remove(id_);
}

void Channel::GraceExpired() {
  AnswerList finished;
  {
    MutexLock lock(mutex_);
    if (!fates_.undecided()) return;
    FailLocked(absl::StrFormat("%s and no word on the actor came within %g s", fates_.end_reason(),
                               Seconds(options_.grace)));
    finished.swap(finished_);
  }
  NotifyFinished(finished, false);
  TellObserver(false);
}

}  // namespace troupe::actors
