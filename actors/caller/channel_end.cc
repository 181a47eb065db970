// How a channel ends: the connection's end, the calls that were under way, what is said of them.
#include <absl/strings/str_format.h>

#include <string>
#include <utility>

#include "actors/caller/pending_calls.h"
#include "actors/caller/channel.h"
#include "actors/bulk/bulk_session.h"
#include "actors/caller/reactor.h"

namespace troupe::actors {

void Channel::Answer(Slot* slot, ErrorCode code, std::string_view text) {
  ByteBuffer body;
  AppendRuntimeError(body, code, text);
  slot->Fill(kFlagReply | kFlagRuntimeError, body.view());
  slot->Finish();
}

void Channel::EndLocked(std::string reason) {
  if (state_ != State::kOpen) return;
  state_ = State::kEnded;
  end_reason_ = absl::StrFormat("the connection ended (%s)", reason);
  written_ = session_.window().sent_offset();
  session_.window().Clear();
  if (bulk_session_ != nullptr) bulk_session_->End(end_reason_);
  ExpectLocked(false);
  if (attached_.load(std::memory_order_relaxed)) reactor_.Unwatch(*this);
  aimless_ = false;
  stream_.Shutdown();  // closed by the destructor: the leader may be reading it just now
  if (on_disconnect_ != nullptr) reactor_.Post(std::move(on_disconnect_));
  EndLineLocked();
  reactor_.SetGrace(id_, options_.grace);
  OpenRoomLocked();
}

void Channel::SetVerdictLocked(ErrorCode code, std::string_view text) {
  if (verdict_flags_ != 0) return;
  AppendRuntimeError(verdict_, code, absl::StrFormat("%s: %s", options_.description, text));
  verdict_flags_ = kFlagReply | kFlagRuntimeError;
}

/// Without a verdict, a call's own fate is its error.
void Channel::FailLocked(const std::string& text) {
  if (state_ == State::kFailed) return;
  state_ = State::kFailed;
  while (Slot* slot = ring_.TakeFront()) {
    const bool sent = slot->end_offset <= written_;
    ByteBuffer body;
    if (verdict_flags_ == 0) {
      AppendRuntimeError(body, sent ? ErrorCode::kMaybeExecuted : ErrorCode::kNotSent,
                         options_.description + ": " + text +
                             (sent ? "; the call had been sent and may have run"
                                   : "; the call had not been sent"));
    }
    const std::string_view bytes = verdict_flags_ == 0 ? body.view() : verdict_.view();
    slot->Fill(verdict_flags_ == 0 ? kFlagReply | kFlagRuntimeError : verdict_flags_, bytes);
    FinishLocked(slot, SequenceOf(slot),
                 sent ? ObservedAnswer::Lost::kMaybeExecuted : ObservedAnswer::Lost::kNotSent);
  }
  // Of calls that come before their caller has seen the end of this channel.
  SetVerdictLocked(ErrorCode::kNotSent, text + "; the call had not been sent");
  OpenRoomLocked();
}

void Channel::Fail(ErrorCode code, const std::string& text) {
  ByteBuffer body;
  AppendRuntimeError(body, code, options_.description + ": " + text);
  FailWith(kFlagReply | kFlagRuntimeError, body.view());
}

void Channel::FailWith(std::uint16_t flags, std::string_view body) {
  reactor_.Drain(*this);  // answers that arrived before the verdict still count
  SlotList finished;
  {
    std::lock_guard lock(mutex_);
    EndLocked("the actor is gone");
    if (bulk_session_ != nullptr) bulk_session_->Dead("its actor has died");
    verdict_flags_ = flags;
    verdict_.Clear();
    verdict_.Append(body.data(), body.size());
    FailLocked("");
    finished.swap(finished_);
  }
  NotifyFinished(finished, false);
  TellObserver(false);
}

void Channel::Lose(const std::string& why) {
  reactor_.Drain(*this);
  SlotList finished;
  {
    std::lock_guard lock(mutex_);
    EndLocked(why);
    if (bulk_session_ != nullptr) bulk_session_->Dead(why);
    FailLocked(why);
    finished.swap(finished_);
  }
  NotifyFinished(finished, false);
  TellObserver(false);
}

void Channel::OnDisconnect(std::unique_ptr<Completion> completion) {
  std::lock_guard lock(mutex_);
  if (state_ == State::kOpen) {
    on_disconnect_.swap(completion);  // the one before is destroyed after the lock is released
  } else if (completion != nullptr) {
    reactor_.Post(std::move(completion));
  }
}

void Channel::Close() {
  Flush();
  std::unique_ptr<Completion> unused;
  SlotList finished;
  {
    std::lock_guard lock(mutex_);
    unused.swap(on_disconnect_);
    if (state_ == State::kOpen && session_.window().sent_offset() != 0 && !session_.greeting()) {
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
  SlotList finished;
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::kEnded) return;
    FailLocked(absl::StrFormat("%s and no word on the actor came within %g s", end_reason_,
                               Seconds(options_.grace)));
    finished.swap(finished_);
  }
  NotifyFinished(finished, false);
  TellObserver(false);
}

}  // namespace troupe::actors
